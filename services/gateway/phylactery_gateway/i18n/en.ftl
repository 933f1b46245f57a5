# What the gateway itself says to people on a phone. See docs/whatsapp.md for when.

sticker = I can't see stickers; write it to me in words.
media = I can't open that kind of file here; write to me what matters in it.
media_too_large = That file is too large for me; send me a smaller one, or write to me what matters in it.
media_failed = I could not fetch the file you sent. Send it to me again, please.
unreadable = I can't read that kind of message; write it to me in words.
correction = Correction: { $text }
refused = I could not take that message. Write it again, a bit shorter.
not_waiting = That is no longer waiting for an answer, so nothing was changed.
yes = Yes
no = No
choose = Choose
may_i = May I { $action }?
other_person = Before I { $action }, somebody else has to approve it; I'll go on once they have answered.
high_risk = Careful: this cannot be undone easily.
sent_sticker = [sticker]
sent_image = [photo]
sent_audio = [voice message]
sent_video = [video]
sent_file = [file]
sent_other = [something that is not text]
