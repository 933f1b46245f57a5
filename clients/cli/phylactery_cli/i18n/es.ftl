# What the phylactery command says to people, in Spanish. See en.ftl.

## Chat, and the commands that start services

approve_verb = APROBAR
undo = deshaz el último cambio
you = tú
agent = agente
sent_file = { $name } ({ $size } bytes, { $type }): en los archivos del agente como { $path }
hint = Prueba: lee welcome.txt   ·   escribe "hola" en notas.txt   ·   /help
files = archivos que el agente puede tocar
former_files = En { $folder } hay archivos de cuando las personas no tenían cada una su carpeta. El agente ya no llega a ellos, porque no se sabe de quién son. Si son tuyos: AGENT_DATA_DIR={ $data } python -m phylactery_agent workspaces give local local
model = modelo
model_at = { $model } en { $url }
model_fallback = reserva
model_none = ninguno: el modo estático sabe de archivos, recordatorios, memoria y formularios con reglas fijas; define PHYLACTERY_MODEL_BASE_URL y PHYLACTERY_MODEL para añadir uno
single_user = aprobaciones: esto lo usa una sola persona, así que se te pregunta a ti lo que en un equipo se preguntaría a otra
approval = ¿Puedo hacer esto?
approvals = ¿Puedo hacer estas { $count } cosas?
no_such_number = Ese número no existe: he preguntado por { $count }.
no_such_id = Aquí no hay nada en espera con ese nombre: { $id }.
which =
    Hay varias cosas en espera. Di cuál, por ejemplo { $command } { $number }:
    { $calls }
answer_one_of = /approve { $number }: lo hago, una vez   ·   /reject { $number }: lo dejo
tool = herramienta
risk = riesgo
expires = caduca en { $minutes } min
answer = sí (o /approve): lo hago, una vez   ·   no (o /reject): lo dejo
answer_several = sí o /approve: las { $count }  ·  no o /reject: ninguna  ·  /approve 1, /reject 2: solo esa
or_type = o escribe: { $text }
nothing_waits = No hay nada que espere una respuesta.
gone =
    { $state ->
        [APPROVED] Eso ya está aprobado. No he cambiado nada.
        [REDEEMED] Eso ya está aprobado. No he cambiado nada.
        [REJECTED] Eso ya está rechazado. No he cambiado nada.
        [CANCELLED] Eso se retiró. No he cambiado nada.
        [EXPIRED] Eso ha caducado. No he cambiado nada. Escribe «otra vez» si todavía lo quieres.
       *[other] Eso ya no espera respuesta. No he cambiado nada.
    }
card_changed = La pregunta ha cambiado desde que la viste, así que no se ha respondido nada. Ahora es esta:
not_shown = No he podido mostrarte de qué se trata, así que no se ha respondido nada. Ahora es esta:
show_whole =
    { $number ->
        [0] Falta una parte: /show lo muestra entero antes de que respondas
       *[other] Falta una parte: /show { $number } lo muestra entero antes de que respondas
    }
typed_before = Eso se escribió antes de que yo preguntara, así que no responde a nada.
no_turn = Todavía no ha pasado nada: di algo primero.
no_spans = Aquí no hay ninguna traza de eso: los servicios la escriben en otra carpeta de datos.
bye = Deteniendo los servicios …
stopped = Detenido. Todo queda guardado en { $folder }.
unknown = No existe el comando { $text }. /help muestra los que hay.
elsewhere = Esta aprobación se responde en RiskGate, no aquí: phylactery approvals show { $id }
help =
    Di con tus palabras lo que quieres, por ejemplo: lee welcome.txt
    Cuando pregunte antes de hacer algo, responde sí o no (o /approve, /reject).
    /undo deshace tu último cambio en un archivo.
    /attach ARCHIVO envía un archivo con tu próximo mensaje.
    Esc o Ctrl-C detiene una respuesta; /quit sale.
    Más: /help approvals, /help keys, /help language, /help trace
help_approvals =
    Un sí o un no claro responde a lo que acabo de preguntar; con una palabra más no responde a nada.
    /approve y /reject responden también si entretanto pediste otras cosas.
    /approve 2 y /reject 2 responden a una sola de varias.
    /show, o /show 2, muestra entero un texto largo del que falta una parte.
help_keys =
    Mientras respondo: Esc o Ctrl-C lo detiene; dos veces deja de esperar. Lo que escribas entretanto se guarda.
    Al escribir: Ctrl-C borra lo escrito; dos veces sale, como Ctrl-D y /quit.
    Mientras el agente no esté disponible, lo que digas se guarda y se envía cuando vuelva; /drop lo descarta.
help_language =
    Respondo en el idioma de la conversación, español o inglés.
    phylactery run --language es responde siempre en español; lo mismo hace la variable PHYLACTERY_LANGUAGE.
help_trace =
    /trace dibuja lo que pasó con tu último mensaje, a través de los tres servicios.
    /details muestra desde ahora cada paso y cada decisión, y la próxima vez los oculta.
attached = { $name } irá con tu próximo mensaje ({ $count } en total).
attach_unreadable = No se puede leer { $path }.
details_on = Desde ahora se muestra cada paso y cada decisión.
details_off = Desde ahora solo se muestra lo que se dice y se pregunta.
fate_died = { $service } se ha detenido por sí solo; vuelve a arrancar en { $seconds } s. Su registro: { $log }
fate_back = { $service } funciona de nuevo.
fate_given_up = { $service } se detiene por sí solo una y otra vez, así que no se vuelve a arrancar. Su registro: { $log }
working = trabajando … { $seconds } s · Esc lo detiene
stopping = deteniendo …
stops_later = Parará en cuanto pueda. Aquí verás cómo acaba.
leave = Ctrl-C otra vez para salir; /quit también sale.
kept = Guardado ({ $count }); se envía en cuanto sea posible. /drop lo descarta.
dropped = Descartado: { $count }. Lo que ya estaba en camino aún puede recibir respuesta.
nothing_kept = No hay nada por enviar.
unsent = Sin enviar: { $count }.
failed = No ha funcionado: { $message }
no_text = Eso no es texto UTF-8, así que no se ha enviado.
in_use = Los servicios de { $folder } ya están en marcha (uno en { $target }). Habla con ellos con phylactery chat, o elige otra carpeta con --data-dir y otros puertos.
late = La respuesta tarda. Se mostrará aquí en cuanto llegue.
away = El agente no responde en { $target }. ¿Está en marcha? phylactery up lo arranca.

## phylactery erase

erase_confirm = ¿Borrar para siempre todo lo que agent, riskgate y memory guardan de { $who }?
erase_yourself = ti
erase_counts = borrado: { $counts }
erase_values = borrado: los argumentos de { $erased } entradas de su registro de auditoría; las decisiones siguen anotadas
erase_nothing = no quedaba nada que borrar
erase_kept = { $count ->
    [one] los argumentos de { $count } llamada se conservan mientras su aprobación esté abierta; haz que se responda o se retire
   *[other] los argumentos de { $count } llamadas se conservan mientras sus aprobaciones estén abiertas; haz que se respondan o se retiren
 }
erase_proof = prueba: { $proof }
erase_failed = no se ha borrado: { $why }
erase_not_asked = no se le ha pedido, porque el agente aún podría escribir en él
erase_operator = allí solo puede borrar un operador; pide a uno que ejecute: phylactery erase { $who }
erase_nameless = necesita tu nombre, y memory no lo ha dado; ejecuta: phylactery erase TU-NOMBRE
erase_away = nada responde en { $target }
erase_done = Está todo borrado, también los archivos de { $who }. Queda lo que hay en carpetas compartidas, los archivos de una versión anterior que no son de nadie y lo que ya se envió.
erase_left = No está todo borrado. Para seguir, cuando eso se arregle: { $command }

## phylactery runs and graphs

runs_none = No hay ejecuciones.
runs_no_doubt = Ningún efecto tiene un resultado desconocido.
runs_more = Hay más: --page { $token }
graphs_columns = grafo,por defecto,versión,cómo trabaja
runs_columns = ejecución,estado,motivo,conversación,empezó
runs_call_columns = ejecución,llamada,herramienta,estado,conversación,propuesta
runs_step_columns = paso,estado,intentos,qué
runs_node_columns = superpaso,nodo,ms,sigue en,llamada,acaba con
runs_event_columns = evento,hora,qué
runs_budget_columns = presupuesto,usado,límite
runs_budgets = superpasos,llamadas a herramientas,llamadas al modelo,tokens,dinero (millonésimas),segundos activos
runs_no_limit = ninguno
runs_retry_of = Repite { $id }.
runs_effects = Ya hecho antes, y desconocido para la nueva ejecución:
runs_retry_effects = lo que hizo puede ocurrir otra vez ({ $calls }). Míralo: phylactery runs show { $id }. Después, si eso quieres: phylactery runs retry { $id } --acknowledge-effects
runs_retry_NOT_FAILED = solo se puede repetir una ejecución fallida: { $id } no falló
runs_retry_RETRIED = { $id } ya se repitió; mira: phylactery runs list
runs_retry_WORDS_GONE = las palabras de { $id } ya no se guardan; dilas de nuevo
runs_retry_NO_TOOLS = { $id } empezó con otras herramientas que las tuyas; pídelo como quien la empezó
runs_retry_THREAD_BUSY = su conversación está ocupada; espera a que acabe, o cancélalo
runs_doubt_hint = Para resolver una: phylactery runs resolve EJECUCIÓN LLAMADA --happened o --did-not-happen
runs_confirm = ¿Cancelar { $id } para siempre?
runs_which = di qué pasó: --happened (ocurrió) o --did-not-happen (no ocurrió)
runs_settled = { $id }: { $state } ({ $resolution })

## phylactery tools

tools_columns = herramienta,estado,riesgo,efecto,origen,qué hace
tools_on = activa
tools_on_unchecked = activa, sin comprobar
pin_new = NUEVA { $name }, que su servidor llama { $tool }:
pin_changed = CAMBIADA { $name }, que su servidor llama { $tool }:
pin_gone = YA NO ESTÁ { $name }, que su servidor llamaba { $tool }:
pin_same = Todas las herramientas están como se fijaron.
pin_confirm = Un modelo leerá estas descripciones. ¿Fijar las herramientas como se muestran?
pin_done = { $count ->
    [one] Se ha fijado { $count } herramienta en { $file }. Un agente en marcha la lee cuando arranca de nuevo.
   *[other] Se han fijado { $count } herramientas en { $file }. Un agente en marcha las lee cuando arranca de nuevo.
 }
pin_unusable = { $server }: { $tool } no se puede fijar: { $why }
tools_unchecked = RiskGate aún no ha enviado su catálogo; aun así comprueba cada llamada.
service_away = nada responde en { $target }; phylactery up arranca los servicios

## phylactery threads

threads_none = No hay conversaciones.
threads_columns = conversación,estado,grafo,eventos,abierta,último evento
threads_confirm = ¿Borrar { $id } y todo lo que se guarda de ella, para siempre?
threads_deleted = Borrada: { $id }

## phylactery memory

memory_none = No se recuerda nada.
memory_no_match = Nada de lo que se recuerda coincide.
memory_no_outputs = No hay salidas guardadas.
memory_no_profile = El perfil está vacío.
memory_forgotten = Olvidado: { $id }
memory_untrusted = [de una herramienta o de la web] { $text }
memory_confirm = ¿Borrar para siempre todo lo que memory guarda de { $who }?
memory_yourself = ti
unchanged = No se cambió nada.
memory_erased = Borrado. { $counts }
memory_exported = { $count ->
    [one] { $count } registro en { $file }
   *[other] { $count } registros en { $file }
 }
memory_broken = la exportación se interrumpió, así que el archivo no está completo. Inténtalo de nuevo
memory_no_file = la exportación se interrumpió, así que no hay { $file }. Inténtalo de nuevo
memory_broken_outputs = dañadas, así que no se sabe más de ellas; restaura una copia: { $pointers }
memory_bad_value = --set espera nombre=valor, por ejemplo --set city=Lima, y no '{ $text }'
memory_columns = recuerdo,tipo,confianza,desde,hasta,texto
memory_profile_columns = nombre,valor,lo dijo,desde,hasta,recuerdo
memory_output_columns = salida,herramienta,caracteres,conversación,creada
memory_read_output = Para leer una, di en el chat: lee la salida { $pointer } desde 0 hasta 4000
memory_bad_query = di qué buscar, en 2000 caracteres como mucho: phylactery memory search té
memory_bad_id = el id de un recuerdo es como mem_…; phylactery memory list muestra los tuyos
memory_not_found = no tienes ningún recuerdo { $id }; phylactery memory list muestra los tuyos
memory_bad_name = un nombre empieza por minúscula y sigue con minúsculas, cifras, _ y .: city
memory_bad_text = un valor es una línea de 1 a 500 caracteres; --remove quita un nombre
memory_bad_page = esa página no la dio este comando; empieza de nuevo sin --page
memory_bad_user = el nombre de un usuario lleva letras, cifras y _.:@-, 128 como mucho
memory_file_exists = { $file } ya existe; elige un archivo nuevo
memory_erase_rest = agent y riskgate conservan lo que tienen; phylactery erase abarca los tres.

## phylactery approvals

approval_fields = aprobación,estado,herramienta,riesgo,clase,solicitante,conversación,caduca
approval_columns = aprobación,estado,herramienta,riesgo,clase,solicitante,caduca
approval_marked = van marcados los caracteres que no se imprimen o imitan a otros
approval_cut = { $count } caracteres sin mostrar; para verlos todos: phylactery approvals show { $id } --full
approval_cut_in_full = { $count } caracteres no caben: no apruebes lo que no has visto
approval_nothing = No hay nada en espera.
approval_none = Ninguna.
approval_closed = { $id } ya está { $state }; solo se responde a una PENDIENTE
approval_json_yes = con --json no se pregunta a nadie: míralo con phylactery approvals show y añade --yes
approval_confirm = ¿Aprobar exactamente esto, una vez?
origin_USER = palabras del propio usuario
origin_REGISTRY = un registro
origin_POINTED = un texto que el usuario señaló
origin_FOREIGN = otro texto, o ninguna parte

## Answers to questions: the words for yes, parted by commas

yes_words = s,si,sí,y,yes
yes_no = { $question } [s/N]: 

## Words of RiskGate's contract: states of approvals and risks

approval_word_PENDING = PENDIENTE
approval_word_APPROVED = APROBADA
approval_word_REDEEMED = USADA
approval_word_REJECTED = RECHAZADA
approval_word_EXPIRED = CADUCADA
approval_word_CANCELLED = RETIRADA
approval_word_LOW = BAJO
approval_word_MEDIUM = MEDIO
approval_word_HIGH = ALTO
approval_word_CRITICAL = CRÍTICO

## Words of memory's contract: kinds, sources and trust

memory_word_FACT = hecho
memory_word_PREFERENCE = preferencia
memory_word_EPISODE = episodio
memory_word_USER = persona
memory_word_ASSISTANT = agente
memory_word_TOOL = herramienta
memory_word_WEB = web
memory_word_SYSTEM = operador
memory_word_UNTRUSTED = ninguna

## Words of runs: their states, those of tool calls and steps, and what became of an effect

runs_word_QUEUED = EN COLA
runs_word_RUNNING = EN CURSO
runs_word_SUSPENDED = EN ESPERA
runs_word_DONE = TERMINADA
runs_word_FAILED = FALLIDA
runs_word_CANCELLED = CANCELADA
runs_word_DEAD = ABANDONADA
runs_word_proposed = propuesta
runs_word_denied = denegada
runs_word_started = empezada
runs_word_finished = terminada
runs_word_in_doubt = en duda
runs_word_pending = pendiente
runs_word_running = en curso
runs_word_done = hecho
runs_word_failed = fallido
runs_word_blocked = bloqueado
runs_word_HAPPENED = ocurrió
runs_word_DID_NOT_HAPPEN = no ocurrió

## Events in the chat (/details): labels of at most 8 letters

event_label_memory = memoria
event_label_route = ruta
event_label_step = paso
event_label_propose = propone
event_label_result = efecto
event_label_notice = aviso
event_label_run = tarea
event_label_riskgate = riskgate

## Events: states, decisions and reasons

event_state_TRANSCRIPT_FULL = la memoria no guarda más de esta conversación; sigue en una nueva
event_state_SECRETS_REDACTED = se han quitado secretos
event_state_PERSONAL_DATA = datos personales
event_state_NOT_INSPECTED = no se ha podido inspeccionar
event_state_DO_NOT_STORE = no se guarda nada de esto
event_state_low = bajo
event_state_medium = medio
event_state_high = alto
event_state_critical = crítico
event_state_pending = pendiente
event_state_running = en curso
event_state_done = hecho
event_state_failed = fallido
event_state_blocked = bloqueado
event_state_success = bien
event_state_error = error
event_state_evicted = guardado en la memoria
event_state_ALLOW = PERMITIDO
event_state_AUTH_REQUIRED = HAY QUE APROBARLO
event_state_BLOCKED = BLOQUEADO
event_state_QUEUED = EN COLA
event_state_RUNNING = EN CURSO
event_state_SUSPENDED = EN ESPERA
event_state_DONE = TERMINADA
event_state_FAILED = FALLIDA
event_state_ANSWERED = respondida
event_state_AWAITING_APPROVAL = espera que una persona lo apruebe
event_state_AWAITING_USER_INPUT = espera lo que digas
event_state_CANCELLED = cancelada
event_state_INTERRUPTED = otro mensaje pidió pasar antes
event_state_APPROVAL_REJECTED = se rechazó la aprobación
event_state_APPROVAL_EXPIRED = caducó la aprobación
event_state_APPROVAL_CANCELLED = se retiró la aprobación
event_state_NOTHING_WAITS = no había nada que esperase una respuesta
event_state_TOOL_FAILED = una herramienta falló
event_state_STEP_LIMIT = llegó al límite de pasos
event_state_TOOL_CALL_LIMIT = llegó al límite de llamadas
event_state_ACTIVE_TIME_LIMIT = llegó al límite de tiempo
event_state_TOO_MANY_ATTEMPTS = se intentó demasiadas veces
event_state_REPEATED_CALL = se repetía la misma llamada
event_state_ALTERNATING_CALLS = dos llamadas se alternaban sin fin
event_state_EFFECT_IN_DOUBT = no se sabe si llegó a hacerse
event_state_GATE_UNAVAILABLE = RiskGate no responde
event_state_MEMORY_UNAVAILABLE = la memoria no está disponible
event_state_GRAPH_CHANGED = el agente se actualizó entretanto

## Events: details

event_not_read = no leída ({ $reason })
event_characters = { $size ->
    [one] { $size } carácter
   *[other] { $size } caracteres
 }
event_kept = guardado como { $pointer }
event_in = en lo que dijiste
event_out = en la respuesta
event_in_result = en lo que dio una herramienta

## Kinds of personal data that were found

event_found_iban = IBAN
event_found_card = número de tarjeta
event_found_es_nie = NIE
event_found_es_dni = DNI
event_found_es_cif = CIF
event_found_us_ssn = número de la seguridad social
event_found_email = dirección de correo
event_found_phone = número de teléfono
event_found_ip_address = dirección IP

## phylactery handoff

human = una persona
handoff_now_OPEN = Se ha pedido que se una una persona.
handoff_now_CLAIMED = { $name } tiene la conversación y responde aquí.
handoff_now_RELEASED = El agente vuelve a responder.
handoff_now_CLOSED = Nadie se ha unido; sigue el agente.
handoff_word_OPEN = espera
handoff_word_CLAIMED = atendida
handoff_word_RELEASED = devuelta
handoff_word_CLOSED = cerrada
handoff_word_REQUESTED = vuelve a pedir una persona
handoff_word_KEYWORD = lo ha pedido
handoff_word_TIMEOUT = tardaba demasiado
handoff_word_SENTIMENT = está molesta
handoff_word_LLM_INTENT = necesita una persona
handoff_word_COMPLETION = formulario terminado
handoff_word_REQUEST = solicitada
handoff_word_OPENED = ha pedido una persona
handoff_word_REQUEUED = de vuelta en la cola
handoff_word_EXPIRED = turno caducado
handoff_word_NOTE = nota
handoff_word_REPLY = respuesta
handoff_word_MESSAGE = mensaje
handoff_columns = id,estado,motivo,persona,razón,desde,con
handoff_none = Nadie espera a una persona.
handoff_claimed = Tienes { $id } hasta las { $until }. Lo que escribas ahora le llega a { $person }.
handoff_replied = Enviado.
handoff_noted = Anotado.
handoff_released = { $id } vuelve a estar con el agente.
handoff_requeued = { $id } vuelve a esperar en la cola.
handoff_before = Lo que se dijo antes:
handoff_unread = (Ahora mismo no se puede leer la conversación anterior.)
handoff_unkept = (un mensaje que no debe guardarse)
handoff_form = Formulario { $form }: { $state }
handoff_prompt = cola
handoff_hint = /list · /claim 1 · /show · /note TEXTO · /release RESUMEN · /queue RESUMEN · /help · /quit
handoff_help =
    /list muestra quién espera. /show 1 muestra una conversación, /claim 1 la toma.
    Cuando tienes una, lo que escribes le llega a la persona, y el agente no dice nada.
    /note TEXTO es solo para tus compañeros.
    /release RESUMEN devuelve la conversación al agente; la persona puede leer el resumen.
    /queue RESUMEN la deja para otro compañero. /quit sale; lo que no devuelvas caduca solo.
handoff_no_such = Aquí no hay esa conversación: { $name }. /list muestra quién espera.
handoff_have_none = No tienes ninguna conversación. /list muestra quién espera, /claim 1 toma la primera.
handoff_have_one = Ya tienes { $id }: devuélvela antes con /release o /queue.
handoff_lost = Tu turno con { $id } ha terminado; ya no se envía nada ahí. /claim la toma de nuevo.
handoff_not_sent = No se ha enviado: { $text }
handoff_left = { $id } sigue siendo tuya hasta que caduque.

## phylactery forms

forms_columns = formulario,versión,título,se envía con
forms_fields = campo,tipo,obligatorio,reservado,pregunta
forms_submission_columns = formulario,estado,conversación,ejecución,cuándo
forms_stored_columns = id,formulario,persona,cuándo,enviado
forms_none_stored = No se ha enviado nada.
forms_read_as_stored = Formulario { $form }: { $tool } se lee como submit_form. Cada envío se guarda aparte; lístalos con: phylactery forms submissions --everyone
forms_none = No hay formularios. AGENT_FORMS_DIR indica la carpeta de la que se leen.
forms_no_submission = No has enviado ningún formulario.
forms_required = obligatorio
forms_sensitive = reservado
forms_checked = Formularios que se pueden usar: { $forms }. Fallos: { $faults }.
forms_tested = Historias: { $stories }, mensajes: { $turns }, distintos de lo esperado: { $failures }.
forms_covered = Nodos recorridos: { $steps } de { $all_steps }; aristas: { $edges } de { $all_edges }.
forms_missing = Sin recorrer: { $what }
forms_unknown = no hay ningún formulario '{ $form }' en esta carpeta; hay: { $known }
forms_would_call = No se ha enviado nada. El agente te preguntaría y después llamaría a { $tool } con { $args }
forms_made = He escrito { $form } y { $story }. Después: phylactery forms check { $folder }
