# What the agent says to people, in Spanish that is natural in Spain and in America alike: "tú", "archivo". See en.ftl.

## Conversation

greeting = ¡Hola! ¿En qué te ayudo?
greeting_by_name = ¡Hola, { $name }! ¿En qué te ayudo?
memory_degraded = (La memoria no está disponible: te contesto sin la conversación anterior ni lo que recuerdo de ti. No se ha perdido nada.)
thanks = De nada.
farewell = ¡Hasta luego!
empty = Tu mensaje está vacío.
fine = Muy bien.
dropped = De acuerdo, lo dejo así.
stays_done = De acuerdo, se queda como está.
asks_anyway = No puedo recordar un deseo así. El cambio de un archivo que pides con claridad lo hago enseguida, y «deshaz» lo quita; si no estoy seguro, te pregunto antes.
cannot_files = No sé borrar, vaciar, copiar, mover ni cambiar de nombre los archivos, ni cambiar o quitar sus líneas, y no he hecho nada. Sí puedo leerlos, escribirlos, añadirles líneas y deshacer mi último cambio.
kept_in_mind = Lo recordaré: { $text }
told_of_oneself = Gracias por contármelo. Para asegurarte de que lo recuerde, di: recuerda que { $clause }
program = Soy un programa: leo y escribo archivos, te aviso a la hora que digas y recuerdo lo que me pides.
you_asked = Me has pedido: «{ $request }»
you_asked_nothing = Todavía no me has pedido nada, o fue hace demasiado tiempo.
time = Es { $weekday }, { $date }, y son las { $clock } ({ $zone }).
help =
    Puedo hacer esto:
    { $lines }
    Más: { $topics }.
sticker = No sé interpretar stickers; escríbeme mejor.
attachment_only_shown = No he entendido qué más hacer con ello.
listening = Te escucho.
stays_write_file = (Lo que escribí en «{ $name }» sigue ahí; «deshaz el último cambio de { $name }» lo quita.)
stays_create_reminder = (El recordatorio «{ $name }» sigue puesto; «cancela el recordatorio { $name }» lo quita.)
forget_none = No recuerdo nada que coincida con «{ $what }», así que no hay nada que olvidar.
forget_which = Puede ser cualquiera de estas cosas. Di cuál, con sus palabras:
    { $found }
forget_all = Olvido las cosas de una en una. Esto es lo que recuerdo; di «olvida» y cuál:
    { $found }
    Para que se borre todo lo tuyo, pídeselo a quien administra el servicio. (Para quien lo administra: phylactery erase.)
no_match_shown = (Nada que coincida con esas palabras.)
cannot_forget = Aquí no sé olvidar lo que ya recuerdo, y no he cambiado nada. (Para quien administra el servicio: phylactery memory forget.)
beyond = Eso no lo sé hacer. Puedo leer y escribir archivos, ponerte recordatorios y recordar lo que me digas.
help_ask = «ayuda { $topic }»
help_files = archivos: lee notas.txt, escribe "hola" en notas.txt, busca «pan»
help_reminders = recordatorios: recuérdame pagar el arriendo mañana a las 9 de la mañana
help_memory = memoria: recuerda que prefiero el té, ¿qué recuerdas de mí?
help_mail = correo: envía un correo a ana@example.org: llego tarde
help_web = web: lee https://example.org/precios
help_forms = formularios: { $phrases }
help_more = otras herramientas
topic_files = archivos
topic_reminders = recordatorios
topic_memory = memoria
topic_mail = correo
topic_web = web
topic_more = otras
unknown = No he entendido «{ $clause }»; «ayuda» muestra lo que puedo hacer.
guest_cannot = Eso no puedo hacerlo aquí para ti. Puedo poner recordatorios, recordar cosas, rellenar un formulario contigo o pedir que venga una persona del equipo.
tool_off = Aquí no puedo { $tool }. (Para quien administra el servicio: { $why }.)
off_NOT_CONFIGURED = define { $setting }
off_NOT_PINNED = nadie ha aceptado todavía esta herramienta; mira «phylactery tools list»
off_DESCRIPTION_CHANGED = la herramienta ha cambiado desde que se aceptó; mira «phylactery tools list»
off_NOT_IN_CATALOG = el catálogo de RiskGate no tiene esta herramienta
off_SCHEMA_DIFFERS = el catálogo de RiskGate describe esta herramienta de otra manera
off_SERVER_UNAVAILABLE = el servidor de la herramienta no está disponible o ya no la ofrece
off_NOT_FOR_GUESTS = esta herramienta es para usuarios, y quien escribe es un invitado
result_cut =
    { $output }…
    { $more ->
        [one] (Falta { $more } carácter, que la memoria no ha podido guardar.)
       *[other] (Faltan { $more } caracteres, que la memoria no ha podido guardar.)
    }
result_kept = (El resultado ya está guardado en la memoria.)
evicted =
    { $label }
    Es un texto largo, y lo guardo entero. Empieza así:
    { $head }
    …
    Termina así:
    { $tail }
    Para leer más: lee la salida { $pointer } desde 0 hasta 4000
step_blocked = No lo he hecho: { $reasons }
step_failed = { $tries ->
    [one] No he podido completar «{ $step }»: { $error }
   *[other] No he podido completar «{ $step }» en { $tries } intentos: { $error }
 }
use = usar «{ $name }»
use_tool = usar «{ $name }» de { $source }
tool_said = { $who } dijo: «{ $said }»
ask_help = ¿Qué prefieres que haga? Puedes darme otra instrucción.
not_done = Queda sin hacer: { $steps }
approval_required = ¿Puedo { $tools }? Responde sí o no.
approvals_required = ¿Puedo hacer estas { $count } cosas: { $tools }? Responde sí o no.
approval_required_other = Antes de { $tools } hace falta que otra persona lo apruebe; sigo cuando responda. Di «cancela» para retirarlo.
waits = { $count ->
    [one] Aún espero tu sí o tu no: { $actions }.
   *[other] { $count } acciones esperan tu sí o tu no: { $actions }.
 }
waits_other = { $count ->
    [one] Otra persona aún tiene que aprobar esto: { $actions }. Di «cancela» para retirarlo.
   *[other] Otra persona aún tiene que aprobar { $count } acciones: { $actions }. Di «cancela» para retirarlas.
 }
stopped = De acuerdo, cancelado: { $steps }.
stopped_unknown = De esto no sé si llegó a hacerse, así que compruébalo: { $steps }.
stopped_done = Ya estaba hecho: { $steps }.
holding = De acuerdo, espero.
waits_words = Aún espero tu respuesta a esto: «{ $question }»
waits_steps = Queda por hacer: { $steps }. Di «continúa» para seguir, o «cancela».
quoted = «{ $text }»
waits_unnamed = hacer lo que te pregunté
why_asked = La pregunta dice por qué la hago. Con un sí hago exactamente lo que muestra, una vez; con un no, lo dejo.
answer_to_nothing = No está claro a qué respondes, así que no he cambiado nada.
which_one = No sé a cuáles de estas cosas te refieres, o si es un sí, así que no he hecho nada de eso.
say_which = Di a cuál, por ejemplo: «sí a la primera, no a la segunda», «sí a todas» o «no a todas».
say_yes_or_no = Responde sí o no.
too_many_wait = Aquí ya hay demasiadas cosas en espera, así que no he empezado esto: responde antes a alguna.
still_pending = Nadie ha respondido todavía si puedo { $tool }.
code_missing = Se ha perdido el código de tu respuesta. Envíala otra vez, por favor.
code_wrong = { $left ->
    [one] El código no es correcto. Te queda 1 intento, o di «cancela».
   *[other] El código no es correcto. Te quedan { $left } intentos, o di «cancela».
 }
approval_wrong_id = Eso no espera tu respuesta: { $why }. No he cambiado nada.
ahead_approved = Anotado, sí a esto: { $steps }.
ahead_rejected = Anotado, no a esto: { $steps }.
approval_refused = No puedo aceptar esa respuesta: { $why }.
nothing_waits = Aquí no hay nada pendiente de tu respuesta: eso { $why }.
nothing_waits_at_all = Aquí no hay nada pendiente de tu respuesta.
rejected = De acuerdo, no lo hago.
rejected_of_several = De acuerdo, esto no lo hice: { $action }.
cancelled = Esto se ha cancelado y no lo he hecho: { $action }.
expired = Nadie respondió a tiempo, así que no he hecho esto: { $action }. Di «otra vez» si aún hace falta.
gate_unavailable = No puedo comprobar ahora si puedo hacerlo, así que no lo he hecho. Pídemelo otra vez dentro de un momento.
gate_unavailable_waiting = No puedo comprobar ahora tu respuesta, así que no he hecho nada. Sigo esperándola: responde otra vez dentro de un momento.
effect_in_doubt = He intentado { $tool } y no puedo saber si llegó a hacerse, así que no lo repito: compruébalo, por favor.
step_limit = Es más de lo que puedo hacer de una vez. Escribe «continúa» para seguir.
tool_limit = He parado: ya he hecho { $limit } cosas seguidas, y no puedo hacer más de una vez. Pídeme el resto aparte.
too_many_steps = Son demasiados pasos de una vez; pídeme { $limit } como mucho. No he hecho ninguno.
nothing_to_do = No queda nada por hacer.
state_PENDING = está pendiente en otro lugar
state_APPROVED = ya está aprobado
state_REDEEMED = ya se usó
state_REJECTED = fue rechazado
state_EXPIRED = ha caducado
state_CANCELLED = se retiró
state_UNKNOWN = no es tuyo
state_UNASKED = no se puede comprobar ahora

## Requests that were only partly understood

doubt_negation = En «{ $clause }» dices que algo no se haga, y no sé con seguridad qué. No he hecho nada. Pídelo sin esa parte; si es parte del texto, ponlo entre comillas.
doubt_exclusion = En «{ $clause }» dejas algo fuera, y no sé hacerlo así. No he hecho nada. Dime solo lo que sí quieres.
doubt_condition = «{ $clause }» depende de una condición, y no sé si se cumple. No he hecho nada. Si lo quieres ahora, pídelo sin la condición.
doubt_hypothetical = «{ $clause }» suena más a una idea que a una petición. No he hecho nada. Si lo quieres, pídelo directamente.
doubt_report = En «{ $clause }» cuentas lo que dijo otra persona. No he hecho nada. Si lo quieres tú, pídelo con tus palabras.
doubt_statement = No veo una petición en «{ $clause }»: cuenta algo o nombra una cosa. No he hecho nada. Si lo quieres, pídelo; si es un texto, ponlo entre comillas.
doubt_permission = «{ $clause }» habla de lo que se puede hacer. No he hecho nada. Si lo quieres, pídelo directamente.
doubt_past = «{ $clause }» habla de algo que ya pasó. No he hecho nada. Di qué quieres ahora; si es parte del texto, ponlo entre comillas.
doubt_future = «{ $clause }» habla de algo para más tarde. No he hecho nada. Di qué quieres ahora; si es parte del texto, ponlo entre comillas.
doubt_irony = «{ $clause }» suena a broma. No he hecho nada. Si va en serio, pídelo otra vez sin esa parte.
doubt_retraction = En «{ $clause }» parece que te retractas de algo. No he hecho nada. Si es parte del texto, ponlo entre comillas; si no, pídelo sin esa parte.
doubt_announce = «{ $clause }» habla de las palabras, no de hacerlo. No he hecho nada. Si quieres que lo haga, pídelo directamente.
doubt_idiom = «{ $clause }» puede ser solo una forma de hablar. No he hecho nada. Dilo con otras palabras.
doubt_question = «{ $clause }» suena a pregunta. No he hecho nada. Si quieres que lo haga, pídelo sin el signo de interrogación.
doubt_which_file = En «{ $clause }» no sé a qué archivo te refieres. Pídelo otra vez con su nombre, por ejemplo: lee notas.txt
doubt_what_content = En «{ $clause }» no sé qué texto quieres. No he hecho nada. Pídelo otra vez con el texto entre comillas.
doubt_copy = No sé copiar un archivo en otro, y no he hecho nada de «{ $clause }». Pídeme que te lea el primero, o dame entre comillas el texto que quieres escribir.
doubt_beside = En «{ $clause }» no sé dónde acaba el texto y dónde empieza lo que quieres que haga con él. No he hecho nada. Pon el texto entre comillas y lo demás fuera.
doubt_which_time = En «{ $clause }» no sé con seguridad a qué hora o qué día. No he hecho nada. Dilo todo junto, por ejemplo: recuérdame el lunes a las 9 de la mañana llamar a Ana

## Palabras que ningún patrón lee, pero que se parecen a lo que dice la gente (rules/likely.py)

offer = ¿Quieres decir «{ $request }»? Contesta sí, o dilo con otras palabras.
perhaps = Si te he entendido bien:
how_are_you = Por aquí todo bien, gracias. ¿Qué puedo hacer por ti?
praised = Gracias, me alegro de que sirva.
displeased = Siento no haber ayudado. Dime lo que quieres de la forma más sencilla: «ayuda» muestra lo que sé hacer.
no_harm = No pasa nada.
laughs = 🙂
sympathy = Gracias por contármelo. Si te ayuda algo, como un recordatorio o una nota, dímelo.
smalltalk = Ya veo. Si quieres que apunte o recuerde algo, dímelo.
mention = Entendido: no he hecho nada. Si quieres que haga algo, pídemelo.
mail_again = No puedo cambiar un correo que ya te he enseñado: contesta no y dime el nuevo, por ejemplo: envía un correo a ana@example.org: llego a las 9
more_how = De un texto largo que te haya enseñado di «lee la salida» con su puntero y el tramo, por ejemplo: lee la salida out_… desde 4000 hasta 8000. De lo demás no hay más.
handoff_say = Para hablar con una persona, di: «quiero hablar con una persona».
language = Contesto en el idioma en el que me escribes: español o inglés.
history_none = En esta conversación no he cambiado nada todavía.
history_done = En esta conversación he hecho esto: { $done }.
pending_some = Esto espera tu respuesta:
repeat = He dicho: { $reply }
say_again = Para que haga otra vez lo último que me pediste, di «otra vez»; si antes te pregunté, te preguntaré primero.
repeat_nothing = Todavía no he dicho nada.
form_list = Puedes rellenar: { $forms }. Di su nombre para empezar.
form_list_none = Aquí no hay formularios.
ask_file = ¿Qué archivo quieres decir? Di su nombre, por ejemplo: notas.txt
ask_topic = ¿Qué busco? Por ejemplo: busca «pan»
ask_append = ¿Qué añado, y a qué archivo? Por ejemplo: añade leche a compra.txt
ask_write = ¿Qué escribo, y en qué archivo? Por ejemplo: escribe "llamar a Luis" en plan.txt
ask_when = ¿Cuándo te lo recuerdo? Dilo todo junto, por ejemplo: recuérdame llamar a Ana mañana a las 9 de la mañana
ask_repeat = Puedo repetir un recordatorio por días, semanas, meses o años, en días de la semana o un día del mes. Dilo por ejemplo así: recuérdame llamar a Ana cada lunes a las 9 de la mañana
ask_reminder = ¿Qué recordatorio quieres decir? Por ejemplo: cancela el recordatorio de regar las plantas
ask_time_half_unsaid = «{ $when }»: ¿de la mañana o de la tarde? Dime cuál, por ejemplo: de la tarde
ask_day_not_in_all_months = «{ $when }»: no todos los meses tienen ese día. Di el 28 o uno anterior, o una fecha
ask_time_past = «{ $when }» ya ha pasado. ¿Cuándo te lo recuerdo?
ask_time_not_understood = No sé qué momento es «{ $when }». Dilo por ejemplo así: mañana a las 9 de la mañana
zone_told = Desde ahora tus horas son las de { $zone }; allí son las { $clock }.
not_the_rest = No he entendido «{ $clause }»; esa parte no la he hecho.
cannot_the_rest = No sé hacer lo de «{ $clause }»; esa parte no la he hecho.
ask_what = ¿Qué te recuerdo? Dilo todo junto, por ejemplo: recuérdame llamar a Ana mañana a las 9 de la mañana
ask_move = ¿Qué recordatorio quieres decir, y cuál es la nueva hora? Cancélalo y ponlo de nuevo, por ejemplo: recuérdame llamar a Ana mañana a las 10 de la mañana
ask_mail = ¿A qué dirección, y qué ha de decir? Por ejemplo: envía un correo a ana@example.org: llego a las 9
ask_note = ¿Qué apunto? Por ejemplo: apunta que la caldera está arreglada
unknown_near = { $unknown } ¿Querías { $near }?
near_or = { $one } o { $other }
near_list_files = ver tus archivos
near_read_file = leer un archivo
near_search_files = buscar en tus archivos
near_file_info = saber algo de un archivo
near_list_reminders = ver tus recordatorios
near_recall_fact = oír lo que recuerdo de ti
near_read_notes = oír lo que apuntaste
near_write_file = escribir un archivo
near_append_file = añadir algo a un archivo
near_edit_file = cambiar una línea de un archivo
near_delete_file = borrar un archivo
near_copy_file = copiar un archivo
near_rename_file = cambiar el nombre de un archivo
near_undo = deshacer un cambio
near_add_note = apuntar algo
near_set_reminder = poner un recordatorio
near_move_reminder = mover un recordatorio
near_cancel_reminder = quitar un recordatorio
near_send_mail = enviar un correo
near_remember_fact = que recuerde algo de ti
near_forget_fact = que olvide algo de ti
cannot_weather = No puedo mirar el tiempo. Puedo recordarte que lo mires, por ejemplo: recuérdame mañana a las 8 de la mañana mirar el tiempo
cannot_web = No puedo buscar en internet. Puedo buscar en tus archivos, por ejemplo: busca «jardín»
cannot_news = No puedo mirar noticias ni resultados. Puedo buscar en tus archivos, por ejemplo: busca «equipo»
cannot_call = No puedo llamar por teléfono. Puedo recordarte que llames, por ejemplo: recuérdame a las 6 llamar a Ana
cannot_message = No puedo mandar mensajes por otras aplicaciones. Puedo enviar un correo, por ejemplo: envía un correo a ana@example.org: llego tarde
cannot_read_mail = No puedo leer tu correo; solo enviarlo, por ejemplo: envía un correo a ana@example.org: llego tarde
cannot_calendar = No puedo ver ni cambiar un calendario. Puedo poner recordatorios, por ejemplo: recuérdame el viernes a las 9 de la mañana la reunión
cannot_payment = No puedo pagar ni ver una cuenta. Puedo recordártelo, por ejemplo: recuérdame mañana a las 9 de la mañana pagar el alquiler
cannot_purchase = No puedo pedir, reservar ni comprar nada. Puedo recordártelo o llevar una lista, por ejemplo: añade leche a compra.txt
cannot_music = No puedo reproducir nada. Puedo leer y escribir archivos, poner recordatorios y recordar lo que me digas.
cannot_picture = No puedo hacer ni cambiar imágenes. Puedo escribir textos en archivos, por ejemplo: escribe "una casa roja" en ideas.txt
cannot_translate = No puedo traducir sin un modelo. Puedo enseñarte el texto, por ejemplo: lee carta.txt
cannot_calculate = No puedo calcular ni convertir sin un modelo. Puedo apuntar las cifras, por ejemplo: apunta que el alquiler son 700
cannot_compose = No puedo escribir un texto mío sin un modelo. Puedo guardar el tuyo, por ejemplo: escribe "feliz cumpleaños" en tarjeta.txt
cannot_summarize = No puedo resumir un texto sin un modelo. Puedo enseñártelo entero, por ejemplo: lee informe.txt
cannot_knowledge = No puedo contestar preguntas sobre el mundo sin un modelo. Puedo buscar en tus archivos, por ejemplo: busca «Perú»
cannot_advice = No puedo dar consejos sin un modelo. Puedo leer y escribir archivos, poner recordatorios y recordar lo que me digas.
cannot_navigation = No puedo buscar caminos ni sitios. Puedo recordar una dirección, por ejemplo: recuerda que el dentista está en la calle Mayor 5
cannot_device = No puedo encender ni apagar nada. Puedo recordártelo, por ejemplo: recuérdame a las 10 cerrar la puerta
cannot_joke = Los chistes y los juegos no son lo mío. Puedo leer y escribir archivos, poner recordatorios y recordar lo que me digas.

## The model, and what it said

model_away = Ahora mismo no me responde el modelo, así que solo puedo hacer cosas sencillas: archivos, recordatorios y correo.
model_refuses = El modelo rechaza mis consultas, y eso solo lo puede arreglar quien administra este servicio; mientras tanto solo puedo hacer cosas sencillas: archivos, recordatorios y correo.
model_still_away = Sin el modelo, que sigue sin responder, no entiendo eso. «ayuda» muestra lo que puedo hacer.
model_too_long = Esta conversación es más larga de lo que admite el modelo, así que te contesto sin él; en una conversación nueva vuelve a funcionar.
model_spent_today = Hoy ya he usado el modelo contigo todo lo que puedo; hasta mañana solo puedo hacer cosas sencillas.
model_spent = Ya he usado el modelo todo lo que puedo para una petición; sigo sin él.
model_not_inspected = No he podido comprobar lo que iba a enseñarle al modelo, así que sigo sin él.
model_unusable = El modelo no ha dado una respuesta útil; sigo sin él.
model_plan_invalid = El modelo no ha dado un plan que se pueda seguir; sigo sin él.
claim_send = No se ha enviado nada.
claim_write = No se ha escrito ni cambiado nada.
claim_delete = No se ha borrado ni cancelado nada.
claim_remind = No se ha creado ningún recordatorio.
claim_other = No se ha hecho nada de eso.
claim_unsure = No sé si eso llegó a hacerse; compruébalo antes de pedirlo otra vez.
claim_again = Si lo quieres, pídemelo otra vez con todos los datos.
result_withheld = Hecho; ahora no puedo mostrar el resultado.
reply_withheld = Tengo una respuesta, pero no puedo mostrarla.
not_inspected = (Ahora no puedo revisar lo que iba a citar, así que no lo muestro. Pídemelo otra vez dentro de un momento.)
secrets_redacted = (He quitado claves o contraseñas de la respuesta.)
words_redacted = No guardo contraseñas, PIN ni claves: donde has escrito una, en lo que haga con tu mensaje dirá { $masks }.
words_redacted_form = Fuera del formulario guardo { $masks } donde has escrito una contraseña, un PIN o una clave.
not_stored = (No guardo este mensaje en la memoria. Lo que necesito para responderte va cifrado y se borra un día después de terminar; queda el registro de las acciones.)
react_step_limit = He parado: esto necesita más pasos de los que puedo dar de una vez. Pídemelo por partes.
react_round_limit = He parado: esto necesita más idas y vueltas de las que puedo dar de una vez. Pídemelo por partes.
react_call_invalid = El modelo pidió algo que no existe o que no encaja, y no se ha hecho.

## Errors, by their code: they follow a colon

error_REPEATED_CALL = se repetía la misma llamada
error_ALTERNATING_CALLS = dos llamadas se alternaban sin avanzar
error_MODEL_CALL_INVALID = el modelo no ha propuesto una llamada válida
error_MODEL_AWAY = este paso necesita el modelo, que no está disponible
error_DO_NOT_STORE = has pedido que no se guarde nada de este mensaje
error_NAME_ALIKE = ya hay uno con un nombre que se lee igual (cambian mayúsculas, espacios o puntos); escribe su nombre tal cual o elige otro
error_NAME_AMBIGUOUS = hay dos archivos o carpetas con ese nombre, con los acentos escritos de otra forma; cambia el nombre de uno
error_NOT_A_FOLDER = eso no es una carpeta
error_NOTHING_TO_UNDO = en esta conversación no hay ningún cambio que deshacer; si fue en otra, di el nombre del archivo
error_NOT_NOTED = no puedo cambiar archivos ahora mismo, y no he cambiado nada; avisa a quien administra este servicio
error_CHANGED_SINCE = el archivo ha cambiado desde la última vez que lo miré, así que lo dejo como está
error_REPLACES_UNKNOWN = esto se pidió antes de que me actualizaran y ya no sé qué versión del archivo querías cambiar; lo he dejado como está, pídemelo otra vez
error_UNDO_NOT_KEPT = no he podido guardar lo que había antes, así que no he cambiado nada
error_UNDO_OTHER = entretanto se ha hecho o deshecho otra cosa; di «deshaz» otra vez para deshacer lo último
error_UNDO_FAILED = no se ha podido dejar como estaba; míralo tú, por favor
error_UNDO_LOST = la versión anterior ya no se puede leer
error_UNDO_GONE = la versión anterior ya no se guarda
error_KNOWN_BEFORE = eso ya lo sabía antes de que me pidieras recordarlo
error_NOT_REVERSIBLE = eso no se puede deshacer desde aquí
error_REMINDER_RANG = ya pasó su hora
error_REMINDER_CANCELLED = ya estaba cancelado
error_PATTERN_INVALID = no es una expresión de búsqueda válida; búscala como texto literal
error_TIME_NOT_UNDERSTOOD = no he entendido cuándo; dímelo como «mañana a las 9 de la mañana», «en 20 minutos» o «2027-03-01 09:00»
error_TIME_HALF_UNSAID = ¿de la mañana o de la tarde? Dime cuál, por ejemplo: de la tarde
error_DAY_NOT_IN_ALL_MONTHS = no todos los meses tienen ese día; di el 28 o uno anterior, o una fecha
error_TIME_PAST = ese momento ya ha pasado
error_REPEAT_INVALID = no he entendido cada cuánto; dímelo como «cada lunes a las 9 de la mañana» o «FREQ=WEEKLY;BYDAY=MO»
error_TIME_ZONE_UNKNOWN = no conozco esa zona horaria; di una como America/Lima
error_TOO_MANY_REMINDERS = ya tienes todos los recordatorios permitidos; cancela alguno antes
error_REMINDER_NOT_FOUND = no tienes ningún recordatorio activo con ese id o ese texto
error_REMINDER_AMBIGUOUS = varios recordatorios dicen eso; cancélalo por su id («¿qué recordatorios tengo?» los muestra)
error_SUBMISSIONS_UNAVAILABLE = aquí no se pueden enviar formularios
error_REMINDERS_UNAVAILABLE = aquí no hay recordatorios disponibles
error_URL_REFUSED = esa dirección web no es válida o se puede leer de más de una manera
error_HOST_NOT_ALLOWED = ese sitio no está entre los que puedo leer (para quien administra el servicio: AGENT_HTTP_ALLOW)
error_ADDRESS_REFUSED = ese sitio está en una red privada, que no puedo leer
error_HTTP_UNREACHABLE = no se ha podido conectar con ese sitio, o su respuesta se cortó
error_HTTP_STATUS = ese sitio tiene un problema o está saturado ahora mismo
error_HTTP_REFUSED = ese sitio no tiene esa página o no me deja leerla
error_TOO_MANY_REDIRECTS = la página redirige demasiadas veces
error_RESPONSE_TOO_LARGE = la página es demasiado grande
error_CONTENT_TYPE_REFUSED = lo que hay ahí no es texto
error_ADDRESS_INVALID = la dirección de correo o el asunto no son válidos; no se ha enviado nada
error_RECIPIENT_REFUSED = el servidor de correo no acepta ese destinatario; no se ha enviado nada
error_MAIL_REFUSED = el servidor de correo ha rechazado el mensaje; no se ha enviado nada
error_MAIL_UNAVAILABLE = no se puede usar el servidor de correo; no se ha enviado nada
error_NOT_FOUND = no existe ese archivo o carpeta
error_NOT_A_FILE = eso no es un archivo
error_NOT_UTF8 = no es un archivo de texto (UTF-8)
error_FILE_EMPTY = el archivo está vacío
error_FILE_TYPE_REFUSED = solo envío textos, documentos PDF y Word, imágenes y audio, y esto no es nada de eso
error_HANDED_OFF = una persona de nuestro equipo tiene ahora la conversación, así que no envío nada
error_FILES_UNAVAILABLE = aquí no se pueden enviar archivos
error_FILE_TOO_LARGE = el archivo es demasiado grande
error_PATH_INVALID = ese nombre de archivo no es válido
error_PATH_OUTSIDE_SANDBOX = solo puedo usar archivos de mi carpeta
error_READ_ONLY = esa carpeta es compartida y ahí solo puedo leer
error_ACCESS_DENIED = el sistema niega el acceso
error_IO_ERROR = el disco ha dado un error
error_SERVER_UNAVAILABLE = el servidor de esta herramienta no está disponible ahora
error_SERVER_BUSY = el servidor de esta herramienta está saturado ahora
error_CALL_REFUSED = el servidor de esta herramienta no aceptó la petición
error_TIMEOUT = ha tardado demasiado
error_TOOL_ERROR = el servicio al que he preguntado dice que ha fallado
error_TOOL_FAILED = la herramienta ha fallado
error_MEMORY_UNAVAILABLE = la memoria no está disponible
error_SECRET_PASSWORD = no guardo contraseñas ni PIN
error_SECRET_CARD = no guardo números de tarjeta ni de cuenta
error_SECRET_KEY = no guardo claves de acceso ni tokens
error_MEMORY_NOT_FOUND = eso ya no lo recuerdo
error_MEMORY_LIMIT = ya guardo todos los recuerdos tuyos que puedo; pídeme antes que olvide alguno
error_ATTACHMENT_INVALID = eso no es un adjunto
error_DOCUMENT_ENCRYPTED = el documento está protegido con contraseña; envíalo sin ella
error_DOCUMENT_TOO_LARGE = el documento es demasiado grande para leerlo aquí; envía uno más corto
error_DOCUMENT_UNREADABLE = el documento está dañado o no es lo que dice ser
error_DOCUMENT_WITHOUT_TEXT = el documento no tiene texto; puede que sean páginas escaneadas
error_DOCUMENT_TIMEOUT = leer el documento llevaba demasiado tiempo; envía uno más corto
error_MEDIA_WITHOUT_TEXT = no he encontrado nada que pueda poner en palabras
error_MEDIA_UNAVAILABLE = el servicio con el que leo imágenes y audio no responde; envíalo más tarde o escríbelo
error_MEDIA_TIMEOUT = leerlo llevaba demasiado tiempo; envíalo más tarde o escríbelo
error_IMAGE_NOT_CONFIGURED = aquí no puedo ver imágenes; escribe lo que dice
error_AUDIO_NOT_CONFIGURED = aquí no puedo escuchar audio; escribe lo que dice
error_OUTPUT_NOT_FOUND = no existe esa salida
error_OUTPUT_NOT_REHYDRATABLE = es demasiado larga para recuperarla entera; léela por tramos o busca en ella
error_RANGE_PAST_END = el tramo empieza pasado el final
error_TOO_MANY_PENDING = ya hay demasiadas aprobaciones en espera; responde antes esas
error_TOO_MANY_ASKED = se han pedido demasiadas aprobaciones en la última hora; espera un poco
error_REJECTED_BEFORE = a justo esto se respondió que no hace un momento, así que todavía no lo pregunto otra vez; si aún lo quieres, pídemelo dentro de unos minutos
error_APPROVER_NOT_ELIGIBLE = quien lo aprobó ya no puede aprobarlo
error_APPROVAL_EXPIRED = la aprobación ha caducado
error_APPROVAL_NOT_PENDING = la aprobación ya no es válida
error_UNKNOWN_TOOL = no conozco esa herramienta
error_INVALID_REQUEST = el servicio no acepta esos valores
error_INVALID_ARGUMENTS = los datos no son válidos para eso
error_TOOL_NOT_ALLOWED = no tienes permiso para usar esta herramienta
error_TOOL_DISABLED = esta herramienta está desactivada ahora; `phylactery tools list` dice por qué
error_RECEIPT_REFUSED = el permiso de RiskGate no es para esta llamada
error_APPROVAL_ARGS_MISMATCH = lo que se aprobó no es lo que se iba a hacer
error_RESULT_NOT_SHOWN = RiskGate no aceptó el resultado de un paso anterior, y sin él no puede decidir sobre este
error_TASK_NOT_FOUND = tu petición ha caducado en RiskGate; pídemelo otra vez
error_TASK_ENDED = tu petición ya está cerrada en RiskGate; pídemelo otra vez
error_TASK_FULL = tu petición se ha hecho demasiado larga para RiskGate; pídeme el resto aparte
error_TASK_CONFLICT = esto no coincide con lo que RiskGate anotó de tu petición; pídemelo otra vez
error_ALREADY_REDEEMED = el permiso ya se usó
error_CANCELLED = se ha cancelado
error_NOT_DONE = una persona ha confirmado que no llegó a hacerse
error_POLICY_CHANGED = las políticas han cambiado
error_BUDGET_EXCEEDED = se pasaría de un presupuesto
error_ASK_USED_UP = eso que me pediste ya está hecho; si lo quieres otra vez, pídemelo de nuevo
error_PERMIT_RETRACTED = lo has retirado
error_FROZEN = un operador lo ha detenido por ahora
error_DECISION_REVOKED = un operador ha retirado el permiso
error_RECORD_ALTERED = lo guardado sobre esto no coincide con lo que consta; avisa a quien administra este servicio
error_DECISION_TOO_OLD = ha pasado demasiado tiempo desde que se permitió; pídemelo otra vez
error_NOT_ELIGIBLE = la tiene que responder otra persona en RiskGate
error_ARGS_MISMATCH = no es lo que se mostró
error_THREAD_MISMATCH = es de otra conversación

## Requests that end without an answer, by their reason

ended_MEMORY_UNAVAILABLE = He parado: la memoria no está disponible. Comprueba qué se ha hecho antes de pedirlo otra vez.
ended_GATE_UNAVAILABLE = RiskGate no responde, así que ahora no puedo hacer nada. Inténtalo otra vez dentro de un momento.
ended_STEP_LIMIT = He parado: esto necesitaba más pasos de los que puedo dar de una vez.
ended_ACTIVE_TIME_LIMIT = He parado: esto necesitaba más tiempo del permitido. Lo que ya se había hecho sigue hecho; compruébalo antes de pedirlo otra vez.
ended_TOO_MANY_ATTEMPTS = He parado: me interrumpieron demasiadas veces mientras atendía este mensaje. Comprueba qué se ha hecho antes de enviarlo otra vez.
ended_INTERNAL_ERROR = Algo ha fallado por nuestra parte y he parado. Comprueba qué se ha hecho antes de pedirlo otra vez.
ended_STATE_LOST = No puedo seguir con lo que esperaba tu respuesta: ya no está guardado. Pídelo de nuevo.
ended_GRAPH_CHANGED = No puedo terminar lo que había empezado: me han actualizado y ahora trabajo de otra manera. Comprueba qué se ha hecho y pídelo de nuevo.
ended_CANCELLED = Cancelado, como pediste. Lo que ya se había hecho sigue hecho.
ended_INTERRUPTED = He parado: otro mensaje de esta conversación pidió pasar antes. Lo que ya se había hecho sigue hecho.

## Reminders

reminder_on_time = Recordatorio: { $text }
reminder_late = Recordatorio (era para el { $due }, hora de { $zone }; no pude avisarte antes): { $text }
reminder_missed = Recordatorio (tocaba { $passed } veces desde el { $due }, hora de { $zone }; no pude avisarte antes): { $text }
repeats_DAILY = { $count ->
    [1] cada día
   *[other] cada { $count } días
 }
repeats_WEEKLY = { $count ->
    [1] cada semana
   *[other] cada { $count } semanas
 }
repeats_MONTHLY = { $count ->
    [1] cada mes
   *[other] cada { $count } meses
 }
repeats_YEARLY = { $count ->
    [1] cada año
   *[other] cada { $count } años
 }
weekday = { $day ->
    [0] lunes
    [1] martes
    [2] miércoles
    [3] jueves
    [4] viernes
    [5] sábado
   *[6] domingo
 }

## Tools: what each does, then a colon and an example; above its result, and when it found nothing

tool_read_output = leer un tramo de una salida guardada: lee la salida <puntero> desde 5000 hasta 6000
    .label = Salida { $pointer }:
tool_rehydrate_output = recuperar entera una salida guardada: recupera la salida <puntero>
    .label = Salida { $pointer }, entera:
tool_read_attachment = leer un archivo o un lugar que has enviado: lee el adjunto <puntero>
    .label = El adjunto dice:
tool_search_output = buscar en una salida guardada: busca error en la salida <puntero>
    .label = En la salida { $pointer }:
tool_create_reminder = recordarte algo más tarde: recuérdame pagar el arriendo mañana a las 9 de la mañana
    .label = Recordatorio creado.
tool_submit_form = enviar un formulario que has rellenado
    .label = Enviado.
tool_list_reminders = listar tus recordatorios: ¿qué recordatorios tengo?
    .label = Tus recordatorios:
tool_cancel_reminder = cancelar un recordatorio: cancela el recordatorio de pagar el arriendo
    .label = Recordatorio cancelado: { $reminder }
tool_http_get = leer una página web: lee https://example.org/precios
    .label = { $url } dice:
tool_list_dir = listar una carpeta: lista los archivos de docs
    .label = En la carpeta:
tool_read_file = leer un archivo: lee notas.txt
    .label = Contenido de «{ $path }»:
tool_write_file = escribir un archivo o añadirle líneas al final: escribe "hola" en notas.txt
    .label = Guardado en «{ $path }».
tool_undo_write = deshacer lo último que hice: deshaz el último cambio de notas.txt
    .label = Cambio deshecho.
tool_file_info = saber si un archivo existe, su tamaño y su último cambio: ¿existe notas.txt?
    .label = Sobre ese archivo:
tool_send_file = enviarte un archivo: envíame informe.pdf
    .label = Te envío «{ $path }».
tool_send_email = enviar un correo: envía un correo a ana@example.org con asunto «Hola» que diga «Llego a las 9»
    .label = Correo enviado a { $to }.
tool_recall = decir qué recuerdo: ¿qué recuerdas sobre el té?
    .label = Lo que recuerdo:
tool_search_files = buscar en los archivos: busca «presupuesto» en los archivos de docs
    .label = He encontrado «{ $pattern }» aquí:
    .nothing = No he encontrado «{ $pattern }».
tool_forget = olvidar algo que me dijiste: olvida que vivo en Lima
    .label = He olvidado: { $memory }
tool_remember = recordar algo sobre ti: recuerda que prefiero el té
    .label = Lo recordaré: { $text }
tool_echo = repetir un texto: repite hola
    .label = { "" }

nothing_shown = (No hay nada.)
more_shown = … (Hay más.)
file_missing = «{ $path }» no existe.
file_found = { $path } ({ $size } B), último cambio: { $changed } UTC
undone_removed = He quitado «{ $path }», porque ese cambio lo había creado.
undone_restored = «{ $path }» vuelve a estar como antes.
mcp_result = Resultado de { $name }, de un servidor externo:

## Ways of working (graphs)

graph_secured = Planifica, propone una llamada cada vez y pasa cada efecto por RiskGate
graph_react = Razona y actúa paso a paso: con un modelo, o sin él por reglas fijas; cada efecto pasa por RiskGate
graph_form = Rellena un formulario conversando y lo envía con el permiso de la persona
form_asked = ¿Puedo enviar «{ $title }»? Responde sí o no.
form_asked_to = ¿Puedo enviar «{ $title }» a { $where }? Responde sí o no.
form_asked_other = Antes de enviar «{ $title }» hace falta que otra persona lo apruebe; sigo cuando responda. Di «cancela» para retirarlo.
form_asked_other_to = Antes de enviar «{ $title }» a { $where } hace falta que otra persona lo apruebe; sigo cuando responda. Di «cancela» para retirarlo.
form_submitted = Enviado: { $title }.
form_in_doubt = No sé si «{ $title }» llegó a enviarse, así que no lo repito. (Para quien administra el servicio: phylactery runs unknown.)
form_not_sent = No he enviado «{ $title }»; tus respuestas siguen aquí, para corregirlas, enviarlas o cancelar.
form_changed = El formulario ha cambiado desde la última vez y te vuelvo a preguntar: { $fields }.
form_changed_none = El formulario ha cambiado desde la última vez; tus respuestas siguen valiendo.

## Pasar la conversación a una persona

handoff_asked = He pedido a una persona de nuestro equipo que te atienda. Te escribirá aquí; mientras tanto, sigo contigo.
handoff_nobody_in_form = Aquí no hay ninguna persona de guardia, así que no puedo pasarte con nadie. Podemos seguir con el formulario.
handoff_nobody = Aquí no hay ninguna persona de guardia, así que no puedo pasarte con nadie. Dime qué necesitas e intentaré ayudarte.
handoff_timeout = Lo siento: esta vez nadie de nuestro equipo ha podido atenderte. Vuelve a pedírmelo si aún necesitas a una persona.
human_said = [{ $name }, una persona de nuestro equipo] { $text }
human_somebody = Alguien
human_summary = [La conversación con { $name }, una persona de nuestro equipo, ha terminado. Su resumen: { $text }]
human_left = [La conversación con { $name }, una persona de nuestro equipo, ha terminado.]

## Lo que han escrito otros

others_words = Eso lo ha escrito otra persona, así que no hago nada de ello por mi cuenta. Dime con tus palabras qué quieres que haga.
others_beside = Lo que has reenviado lo ha escrito otra persona: de eso no he hecho nada.
passed_on = [reenviado, escrito por otra persona] { $text }

## Una parte del día que se ha agotado

share_turns = Hoy me has escrito mucho, así que volveré a contestarte mañana. Aún puedes responder a mis preguntas, parar lo que esté en marcha o pedir una persona del equipo.
share_answers = Hoy me has escrito mucho, así que seguiremos con esto mañana. Aún puedes responder sí o no, pararlo o pedir una persona del equipo.
share_forms = Hoy has empezado todos los formularios que puedo admitir; mañana puedes empezar el siguiente. El que esté abierto continúa.
share_escalations = Hoy has pedido varias veces una persona y nuestro equipo lo sabe. No puedo volver a avisar hasta mañana.

## Lo que se hizo sin preguntar y lo que se deshizo

listed = { $before } y { $last }
also_done = También { $what }. Si dices «deshaz», lo dejo { $count ->
    [1] como estaba
   *[other] todo como estaba
}.
also_done_only = También { $what }.
also_in_doubt = También intenté esto y no sé si funcionó: { $what }.
done_write_file = escribí en «{ $name }»
done_write_file_unnamed = escribí en un archivo
done_create_reminder = puse el recordatorio «{ $name }»
done_create_reminder_unnamed = puse un recordatorio
done_cancel_reminder = cancelé el recordatorio «{ $name }»
done_cancel_reminder_unnamed = cancelé recordatorios
done_remember = guardé en la memoria lo que dijiste
done_something = usé una herramienta que se puede deshacer
done_tool = hice esto: { $tool }
back_write_file = «{ $name }» vuelve a estar como antes.
back_write_file_removed = He quitado «{ $name }», porque lo había creado yo.
back_write_file_unnamed = El archivo vuelve a estar como antes.
back_create_reminder = He cancelado el recordatorio «{ $name }».
back_create_reminder_unnamed = He cancelado el recordatorio.
back_cancel_reminder = El recordatorio «{ $name }» vuelve a estar puesto.
back_cancel_reminder_unnamed = Los recordatorios vuelven a estar puestos.
back_cancel_reminder_missed = No he vuelto a poner «{ $name }»: ya pasó su hora.
back_remember = Ya no lo recuerdo.
back_something = Otra cosa más vuelve a estar como antes.
undo_which = Lo último: { $what }. No sé qué quieres deshacer: «deshaz» lo deshace todo; «cancela el recordatorio …» o «deshaz el último cambio de notas.txt», solo una cosa.
undo_none = Lo último que hice no se puede deshacer así. «cancela el recordatorio …» quita un recordatorio, y «deshaz el último cambio de notas.txt» recupera un archivo.
undo_except = No he deshecho nada: no sé dejar fuera una parte de lo que hice. «deshaz» lo deshace todo, y «deshaz el último cambio de notas.txt», solo un archivo.
stays_as_it_is = Esto no lo he deshecho: { $what } – { $why }.
ask_about_changed = ¿Qué hago con el archivo?
