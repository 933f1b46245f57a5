# What the gateway itself says to people on a phone. See docs/whatsapp.md for when.

sticker = I can't see stickers; write it to me in words.
media = I can't open that kind of file here; write to me what matters in it.
media_too_large = That file is too large for me; send me a smaller one, or write to me what matters in it.
media_failed = I could not fetch the file you sent. Send it to me again, please.
file_changed = I did not send “{ $name }”: it has been changed since. Ask me for it again, please.
file_not_taken = I can't send “{ $name }” here: this kind of file, or its size, is not accepted.
file_not_sent = I could not send you “{ $name }”. Ask me for it again later, please.
file_in_doubt = I don't know whether “{ $name }” reached you, so I won't send it twice. If it isn't here, ask me for it again.
unreadable = I can't read that kind of message; write it to me in words.
correction = Correction: { $text }
refused = I could not take that message. Write it again, a bit shorter.
gone =
    { $state ->
        [APPROVED] That was approved already.
        [REDEEMED] That was approved already.
        [REJECTED] That was turned down already.
        [CANCELLED] That was withdrawn.
        [EXPIRED] That has expired.
       *[other] That is no longer waiting for an answer.
    }
unchanged = Nothing was changed.
ask_again = Write “again” if you still want it.
see_all = See all
part_of_it = A part is left out here. Press “{ $see }”, or write “see all”, to read all of it before you answer.
yes = Yes
no = No
withdraw = Withdraw
withdraw_in_words = Answer “{ $no }” to withdraw it.
choose = Choose
may_i = May I { $action }?
may_i_all = May I do these { $count } things?
other_person = Before I { $action }, somebody else has to approve it; I'll go on once they have answered.
arg_path = file
arg_content = text
arg_append = add to the end
arg_to = to
arg_subject = subject
arg_body = message
arg_url = page
arg_text = text
arg_when = when
arg_repeat = repeats
arg_time_zone = time zone
arg_reminder = reminder
arg_memory = what you told me
arg_file = the file
arg_file_bytes = size in bytes
arg_file_type = type
arg_file_begins = it begins
arg_file_replaced = replaces the file that is there, size in bytes
blanks = [{ $count } spaces]
left_out = …[{ $count } characters are not shown here]…
above = { $name }: as above ({ $count } characters)
card_too_long = This is too long to be shown here whole, so you cannot say yes to it here. Ask me for it in smaller parts.
answer_in_words = Answer “{ $yes }” or “{ $no }”.
answer_with_no = Answer “{ $no }” to turn it down.
how_to_react = That sign answers nothing there. Press a button of the message, or quote it and write “yes” or “no”.
high_risk = Careful: this cannot be undone easily.
sent_sticker = [sticker]
sent_image = [photo]
sent_audio = [voice message]
sent_video = [video]
sent_file = [file]
sent_other = [something that is not text]
