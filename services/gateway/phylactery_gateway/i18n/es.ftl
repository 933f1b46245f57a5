# Lo que la pasarela misma dice en el teléfono, en español de todas partes: "tú", "archivo". See en.ftl.

sticker = No puedo ver stickers; escríbemelo con palabras.
media = Aquí no puedo abrir ese tipo de archivo; escríbeme lo importante.
media_too_large = Ese archivo es demasiado grande para mí; envíame uno más pequeño o escríbeme lo importante.
media_failed = No he podido descargar el archivo que has enviado. Envíamelo otra vez, por favor.
unreadable = No puedo leer ese tipo de mensaje; escríbemelo con palabras.
correction = Corrección: { $text }
refused = No he podido aceptar ese mensaje. Escríbelo otra vez, un poco más corto.
not_waiting = Eso ya no espera respuesta, así que no he cambiado nada.
yes = Sí
no = No
choose = Elegir
may_i = ¿Puedo { $action }?
other_person = Antes de { $action } hace falta que otra persona lo apruebe; sigo cuando responda.
high_risk = Cuidado: esto no se deshace fácilmente.
sent_sticker = [sticker]
sent_image = [foto]
sent_audio = [audio]
sent_video = [vídeo]
sent_file = [archivo]
sent_other = [algo que no es texto]
