# Lo que la pasarela misma dice en el teléfono, en español de todas partes: "tú", "archivo". See en.ftl.

sticker = No puedo ver stickers; escríbemelo con palabras.
media = Aquí no puedo abrir ese tipo de archivo; escríbeme lo importante.
media_too_large = Ese archivo es demasiado grande para mí; envíame uno más pequeño o escríbeme lo importante.
media_failed = No he podido descargar el archivo que has enviado. Envíamelo otra vez, por favor.
file_changed = No te he enviado «{ $name }»: ha cambiado desde entonces. Pídemelo otra vez, por favor.
file_not_taken = No puedo enviarte «{ $name }» por aquí: no se admite ese tipo de archivo o su tamaño.
file_not_sent = No he podido enviarte «{ $name }». Pídemelo otra vez más tarde, por favor.
file_in_doubt = No sé si «{ $name }» te ha llegado, así que no lo envío dos veces. Si no está aquí, pídemelo otra vez.
unreadable = No puedo leer ese tipo de mensaje; escríbemelo con palabras.
correction = Corrección: { $text }
refused = No he podido aceptar ese mensaje. Escríbelo otra vez, un poco más corto.
gone =
    { $state ->
        [APPROVED] Eso ya está aprobado.
        [REDEEMED] Eso ya está aprobado.
        [REJECTED] Eso ya está rechazado.
        [CANCELLED] Eso se retiró.
        [EXPIRED] Eso ha caducado.
       *[other] Eso ya no espera respuesta.
    }
unchanged = No he cambiado nada.
ask_again = Escribe «otra vez» si todavía lo quieres.
see_all = Ver todo
part_of_it = Aquí falta una parte. Pulsa «{ $see }», o escribe «ver todo», para leerlo entero antes de responder.
yes = Sí
no = No
withdraw = Retirar
withdraw_in_words = Responde «{ $no }» para retirarlo.
choose = Elegir
may_i = ¿Puedo { $action }?
may_i_all = ¿Puedo hacer estas { $count } cosas?
other_person = Antes de { $action } hace falta que otra persona lo apruebe; sigo cuando responda.
arg_path = archivo
arg_content = texto
arg_append = añadir al final
arg_to = para
arg_subject = asunto
arg_body = mensaje
arg_url = página
arg_text = texto
arg_when = cuándo
arg_repeat = se repite
arg_time_zone = zona horaria
arg_reminder = recordatorio
arg_memory = lo que me dijiste
arg_file = el archivo
arg_file_bytes = tamaño en bytes
arg_file_type = tipo
arg_file_begins = empieza así
arg_file_replaced = reemplaza el archivo que hay, tamaño en bytes
blanks = [{ $count } espacios]
left_out = …[{ $count } caracteres que aquí no se ven]…
above = { $name }: lo de arriba ({ $count } caracteres)
card_too_long = Es demasiado largo para verlo entero aquí, así que desde aquí no puedes decir que sí. Pídemelo en partes más cortas.
answer_in_words = Responde «{ $yes }» o «{ $no }».
answer_with_no = Responde «{ $no }» para rechazarlo.
how_to_react = Ese signo ahí no responde a nada. Pulsa un botón del mensaje, o cítalo y escribe «sí» o «no».
high_risk = Cuidado: esto no se deshace fácilmente.
sent_sticker = [sticker]
sent_image = [foto]
sent_audio = [audio]
sent_video = [vídeo]
sent_file = [archivo]
sent_other = [algo que no es texto]
