# Why memory keeps a text or not, in Spanish. See en.ftl.

kept_FACT = Afirma un hecho duradero.
kept_PREFERENCE = Expresa una preferencia.
kept_STABLE_PREFERENCE = Dice cómo lo quiere siempre la persona.
kept_KEPT_ON_REQUEST = Alguien pidió guardarlo.
kept_QUESTION = Es una pregunta.
kept_COMMAND = Pide que se haga algo ahora.
kept_SMALL_TALK = Es una fórmula de cortesía.
kept_TEMPORARY = Solo vale por ahora.
kept_NOTHING_LASTING = Las reglas no encuentran en ello ningún hecho ni preferencia.
kept_SECRET_PASSWORD = Contiene una contraseña o un PIN.
kept_SECRET_CARD = Contiene un número de tarjeta o de cuenta.
kept_SECRET_KEY = Contiene una clave de acceso o un token.
kept_UNTRUSTED = Procede de una herramienta o de la web, así que no entra en el perfil.
kept_UNGROUNDED = No está en las palabras de la persona, así que no entra en el perfil.
kept_UNCONFIRMED_SOURCE = Ningún mensaje de la persona contiene estas palabras, así que no cuentan como suyas.
kept_KNOWN = Ya se recuerda.
