# What RiskGate says to people, in Spanish. See en.ftl.

## Reasons, by their code

reason_INVALID_JSON = Los argumentos no son JSON válido.
reason_NOT_AN_OBJECT = Los argumentos deben ser un objeto JSON.
reason_DUPLICATE_KEY = Un objeto repite una clave.
reason_TOO_DEEP = Los argumentos tienen más de { $limit } niveles de anidamiento.
reason_TOO_LARGE = Los argumentos ocupan más de { $limit } bytes.
reason_NUMBER_OUT_OF_RANGE = Un número está fuera de lo que todo lector de JSON puede representar con exactitud.
reason_NUMBER_NOT_EXACT = Un número tiene más dígitos de los que se conservarían.
reason_INVALID_UNICODE = Un texto contiene un sustituto suelto o un carácter nulo.
reason_RESERVED_KEY = Un objeto usa una clave reservada.
reason_INTEGRITY_MISMATCH = Los argumentos no coinciden con la suma de comprobación que hizo quien llama.
reason_UNKNOWN_TOOL = El catálogo no conoce esta herramienta.
reason_NOT_FOR_GUESTS = Como persona invitada puedes tener aquí recordatorios, lo que recuerdo para ti, formularios y una persona del equipo, pero esto no.
reason_FORM_ONLY = Esto solo se hace al final de un formulario, cuando has visto lo que has rellenado.
reason_SCHEMA_MISMATCH = Quien llama tiene otro esquema de esta herramienta que el catálogo.
reason_VALUE_NOT_REPRESENTABLE = Una política mira este valor, que no se puede representar con exactitud.
reason_AMOUNT_NOT_COUNTABLE = Un presupuesto cuenta este importe, pero falta, es negativo, no es exacto o es demasiado grande para sumarlo.
reason_RECIPIENTS_NOT_COUNTABLE = Un presupuesto cuenta destinatarios, y esta llamada tiene más de { $limit }.
reason_USAGE_UNKNOWN = Un presupuesto cuenta esta herramienta, pero no se leyó lo que lleva contado.
reason_CALL_NOT_KEPT = No se permite: los argumentos se borraron y la herramienta cambió. Propónla con otro tool_call_id.
reason_ASK_USED_UP = No se permite: esta petición ya se llevó a cabo. Vuelve a preguntar a la persona.
reason_PERMIT_RETRACTED = No se permite: la persona lo ha retirado.
reason_VALUE_MASKED = Contiene una marca donde se ocultó un secreto al modelo; el secreto mismo se perdería.
reason_READ_IN_PART = No se ha leído todo lo que esto reemplaza o copia; el resto se perdería.
reason_TASK_ENDED = Ya no se permite: lo que se pidió ha terminado. Pídelo otra vez en una tarea nueva.
reason_DECISION_TOO_OLD = Ya no se permite: esto se decidió hace demasiado tiempo. Propónlo de nuevo con otro tool_call_id.
reason_DECISION_REVOKED = No se permite: un operador ha revocado esta decisión.
reason_RECORD_ALTERED = Lo guardado sobre esta decisión no coincide con el registro de auditoría. Avisa a quien administra RiskGate.
reason_FROZEN = Un operador ha detenido por ahora todas las llamadas.
reason_FROZEN_TENANT = Un operador ha detenido por ahora todas las llamadas de esta organización.
reason_FROZEN_USER = Un operador ha detenido por ahora todas las llamadas de este usuario.
reason_FROZEN_ACTOR = Un operador ha detenido por ahora todo lo que propone este agente o canal.
reason_FROZEN_TOOL = Un operador ha detenido por ahora esta herramienta.
reason_POLICY_ERROR = No se pudieron evaluar las políticas, así que la llamada se bloquea.
reason_SUBJECT_NOT_A_USER = Las decisiones son sobre usuarios; un sujeto de otro tipo no puede hacer nada.
reason_POLICY_NO_PERMIT = Ninguna política permite esta llamada.
reason_POLICY_FORBID = Una política no permite esto: { $title }
reason_POLICY_PERMIT = Una política permite esto: { $title }
reason_LOW_STAKES = Hecho sin preguntar, porque es solo tuyo y se puede deshacer: { $title }
reason_APPROVAL_REQUIRED = Esto necesita una aprobación ({ $approval_class }): { $title }
reason_APPROVAL_UNANSWERABLE = Nadie puede aprobarlo aquí: la clase { $approval_class } necesita varias personas y solo hay una.

## What an argument violates, by the keyword of its schema: it follows the argument's path

violation_required = Falta el argumento { $limit }.
violation_type = Debe ser de tipo { $limit }.
violation_additionalProperties = El esquema no tiene ese argumento.
violation_minimum = Debe ser como mínimo { $limit }.
violation_maximum = Debe ser como máximo { $limit }.
violation_exclusiveMinimum = Debe ser mayor que { $limit }.
violation_exclusiveMaximum = Debe ser menor que { $limit }.
violation_minLength = Debe tener al menos { $limit } caracteres.
violation_maxLength = Debe tener como máximo { $limit } caracteres.
violation_minItems = Debe tener al menos { $limit } elementos.
violation_maxItems = Debe tener como máximo { $limit } elementos.
violation_pattern = No tiene la forma que exige el esquema.
violation_format = No tiene un formato { $limit } válido.
violation_enum = No es ninguno de los valores que admite el esquema.
violation_const = No es el valor que exige el esquema.
violation_uniqueItems = Tiene elementos repetidos.
violation_multipleOf = Debe ser múltiplo de { $limit }.
violation_null = No puede ser null; deja el argumento fuera.
violation_any = No cumple el esquema de la herramienta.

## Budgets

budget_calls = Al presupuesto { $budget } no le quedan llamadas.
budget_amount = El presupuesto { $budget } no cubre este importe.
budget_recipients = El presupuesto { $budget } no admite más destinatarios.

## Why a call does not count as requested, by the kind of doubt

doubt_unasked = No pediste esto.
doubt_negation = Parte de lo que dijiste prohíbe algo, y no sé con seguridad qué.
doubt_exclusion = Dejaste algo fuera, y no sé con seguridad si esto es lo que queda.
doubt_condition = Pusiste una condición, y no sé si se cumple.
doubt_question = Sonaba a pregunta, no a petición.
doubt_hypothetical = Sonaba a una idea, no a una petición.
doubt_statement = Parecía que contabas algo, no que lo pedías.
doubt_report = Contaste lo que dijo o quiere otra persona.
doubt_permission = Hablaste de lo que se puede, no de lo que hay que hacer.
doubt_past = Sonaba a que ya estaba hecho.
doubt_future = Sonaba a que era para más tarde.
doubt_irony = Sonaba a broma.
doubt_retraction = Te retractaste de algo.
doubt_announce = Hablaste de las palabras, no de hacerlo.
doubt_idiom = Puede ser solo una forma de hablar.
doubt_trailing = Dijiste algo después de la petición que no entiendo.
doubt_leftover = Aquí falta parte de lo que pediste.
doubt_value = Algo de esto no es lo que dijiste.
doubt_time = No estoy seguro de la fecha o la hora.
doubt_mode = No sé con seguridad si añadir a lo que hay o reemplazarlo.
doubt_content = Lo que dice no es exactamente lo que dijiste.
doubt_pasted = Parte de tu mensaje puede ser texto de otra persona.
doubt_disguise = Tu mensaje contiene caracteres que parecen otros.
doubt_mark = Tu mensaje contiene una marca que puede tacharlo o negarlo.
doubt_framed = Otra cosa que dijiste puede significar que no se haga, o que todavía no.
doubt_length = Tu mensaje es demasiado largo para que pueda estar seguro.
doubt_used-up = Lo pediste una vez, y ya se hizo.
doubt_any = No estoy seguro de que hayas pedido esto.

## Avisos: lo que se le cuenta a la gente fuera de una conversación

notices_approval_waiting = { $requester } necesita una aprobación para usar { $tool }.
notices_approval_reminder = Sigue esperando: { $requester } necesita una aprobación para usar { $tool }.
notices_approval_decided_APPROVED = { $decided_by } ha aprobado que { $requester } use { $tool }.
notices_approval_decided_REJECTED = { $decided_by } ha rechazado que { $requester } use { $tool }.
notices_approval_decided_CANCELLED = Ya no espera: { $requester } ya no necesita { $tool }.
notices_approval_expired = Nadie ha respondido a tiempo: { $requester } no puede usar { $tool }.
notices_approval_expired_unused = Aprobado, pero no usado a tiempo: { $tool } no se ha ejecutado para { $requester }.
notices_calls_frozen_all = Un operador ha congelado todas las llamadas.
notices_calls_frozen_tenant = Un operador ha congelado todas las llamadas de { $tenant }.
notices_calls_frozen_user = Un operador ha congelado todas las llamadas del usuario { $name }.
notices_calls_frozen_actor = Un operador ha congelado todo lo que propone { $name }.
notices_calls_frozen_tool = Un operador ha congelado la herramienta { $name }.
notices_calls_unfrozen_all = Todas las llamadas vuelven a ser posibles: ya no están congeladas.
notices_calls_unfrozen_tenant = Las llamadas de { $tenant } vuelven a ser posibles: ya no están congeladas.
notices_calls_unfrozen_user = Las llamadas del usuario { $name } vuelven a ser posibles: ya no están congeladas.
notices_calls_unfrozen_actor = { $name } puede volver a proponer llamadas: ya no está congelado.
notices_calls_unfrozen_tool = La herramienta { $name } se puede volver a usar: ya no está congelada.
notices_limit_reached = { $requester } ha llegado al límite { $limit }: no se ha permitido { $tool }.
notices_limit_reached_TOO_MANY_PENDING = { $requester } tiene demasiadas preguntas pendientes: no se ha preguntado por { $tool }.
notices_limit_reached_TOO_MANY_ASKED = { $requester } ha tenido demasiadas preguntas en una hora: no se ha preguntado por { $tool }.
notices_effect_in_doubt = Nadie sabe si { $tool } ha tenido efecto para { $requester }. Míralo donde actúa e informa de lo que encuentres.
notices_bundle_activated = Desde ahora decide la revisión { $revision } de las políticas.
notices_bundle_activated_rollback = Vuelve a decidir la revisión { $revision } de las políticas: se ha restaurado una anterior.
notices_test = Esto es una prueba. Los avisos llegan aquí.
notices_how = Para responder: riskgate approvals show { $id }
notices_field_tool = Herramienta
notices_field_requester = Para
notices_field_tenant = Organización
notices_field_amount = Importe
notices_field_stakes = En juego
notices_field_risk = Riesgo
notices_field_class = Quién responde
notices_field_decided_by = Respondida por
notices_field_expires = Hasta
notices_field_approval_id = Aprobación
notices_field_execution_id = Ejecución
notices_field_activated_by = La ha activado
notices_field_bundle_hash = Paquete

## Por qué se pregunta a una persona, y qué hace un sí, en una tarjeta

why_always = Antes de hacer esto pregunto.
why_quoted = «{ $words }»: { $sentence }
why_unclear = No sé bien cómo entender «{ $words }».
why_whom = No dijiste a quién; iría a { $value }.
why_unsaid = Tu petición no dice { $value }.
why_listed = No dijiste { $value } con esas palabras.
why_spelled = Escribiste { $value } de otra manera.
why_pointed = { $value } lo tengo de lo que me pediste mirar, no de ti.
why_dictated = Una parte pueden ser palabras de otra persona.
why_address = Es una dirección que no escribiste.
why_reader = Puede que te haya entendido mal.
why_form = Solo envío lo que rellenaste cuando lo has visto.
why_form_other = Otra persona tiene que aceptar este formulario.
why_two = Dos personas tienen que aceptar esto.
why_card = Contiene un número de tarjeta.
why_secret = Contiene una contraseña o una clave.
why_spends = Esto gasta { $amount }.
why_spends_unknown = Esto gasta algo, y no sé cuánto.
why_arrives = Le llegaría a { $whom }.
why_public = Cualquiera podría verlo.
why_destroys = Esto borra algo.
why_guards = Esto cambia algo que protege: una cerradura, una contraseña, un permiso o una regla.
why_executed = Otros programas ejecutan u obedecen un archivo con este nombre.
why_final = No se puede deshacer.

## riskgate approvals

approvals_approval = aprobación
approvals_state = estado
approvals_tool = herramienta
approvals_risk = riesgo
approvals_stakes = alcance de esta llamada
approvals_class = clase
approvals_requester = lo pide
approvals_thread = conversación
approvals_run = ejecución
approvals_expires = caduca en
approvals_hash = huella de los argumentos
approvals_decided_by = respondió
approvals_wanted_by = lo exige
approvals_what = qué
approvals_argument = argumento
approvals_value = valor
approvals_from = de dónde sale
approvals_origin_USER = palabras de la persona, o hecho en esta tarea
approvals_origin_REGISTRY = un registro
approvals_origin_POINTED = un texto que la persona señaló
approvals_origin_FOREIGN = otro texto, o ninguna parte
approvals_before = aprobado antes
approvals_votes = { $votes } de { $needed }
approvals_over = caducada
approvals_yours = ● espera tu respuesta
approvals_nothing_waits = No hay nada en espera.
approvals_none = Ninguna.
approvals_more = Hay más; lístalas con --limit.
approvals_no_arguments = Los argumentos ya no se conservan.
approvals_left_out = { $count ->
    [one] Aquí no se muestra { $count } argumento más: no apruebes lo que no has visto.
   *[other] Aquí no se muestran { $count } argumentos más: no apruebes lo que no has visto.
 }
approvals_cut = Un valor no se muestra entero: riskgate approvals show { $id } --full lo muestra todo.
approvals_cut_in_full = Un valor es más largo que lo que se puede mostrar: no apruebes lo que no has visto.
approvals_compared = Comparado con { $id }, la última llamada aprobada a esta herramienta para { $requester }.
approvals_not_compared = Todavía no se ha aprobado ninguna llamada a esta herramienta para { $requester }.
approvals_SAME = igual
approvals_CHANGED = cambiado
approvals_NEW = nuevo
approvals_REMOVED = quitado
approvals_mark_CONTROL = caracteres de control
approvals_mark_BIDI = sentido de lectura alterado
approvals_mark_INVISIBLE = caracteres invisibles
approvals_mark_LOOK_ALIKE = letras que imitan a otras
approvals_mark_MIXED_SCRIPT = alfabetos mezclados
approvals_mark_PILED_UP = marcas apiladas
approvals_mark_CUT = { $count } caracteres sin mostrar
approvals_mark_HIDDEN = parte sensible oculta
approvals_confirm = Para aprobar esto, una vez, escribe los { $count } últimos caracteres de la huella (cualquier otra cosa no cambia nada)
approvals_unchanged = No se ha cambiado nada.
approvals_done = { $id }: { $state }
approvals_voted = { $id }: tu sí cuenta, { $votes } de { $needed }; falta que responda otra persona
approvals_other_hash = { $id } trata de otros argumentos que los de --args-hash; míralo de nuevo
approvals_yes_needs_hash = --yes necesita --args-hash, la huella de lo que viste
approvals_no_terminal = no hay terminal donde preguntar; para aprobar, usa --yes y --args-hash
approvals_not_pending = { $id } ya está { $state }; solo se puede responder una que esté PENDING
approvals_watching = Observando { $target }. Ctrl-C termina.
approvals_ask = [a]probar  [r]echazar  [s]altar  [q] salir
approvals_ask_reason = ¿Por qué? (puedes dejarlo vacío)
approvals_lost = Se ha perdido la conexión ({ $why }); reintentando …
approvals_hours = { $hours } h { $minutes } min
approvals_minutes = { $minutes } min { $seconds } s
