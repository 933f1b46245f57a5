# Why memory keeps a text or not, in English, by the reason. Every language has the same messages: see
# docs/guides/add-a-language.md.

kept_FACT = It states a lasting fact.
kept_PREFERENCE = It states a preference.
kept_STABLE_PREFERENCE = It states a lasting preference.
kept_KEPT_ON_REQUEST = The user asked to keep it.
kept_QUESTION = It is a question.
kept_COMMAND = It asks for something to be done now.
kept_SMALL_TALK = It is small talk.
kept_TEMPORARY = It is true only for now.
kept_NOTHING_LASTING = The rules find no fact or preference in it.
kept_SECRET_PASSWORD = It contains a password or PIN.
kept_SECRET_CARD = It contains a card or account number.
kept_SECRET_KEY = It contains a key or token.
kept_UNTRUSTED = It comes from a tool or the web, so it stays out of the profile.
kept_UNGROUNDED = It is not in the person's own words, so it stays out of the profile.
kept_UNCONFIRMED_SOURCE = No message of the person contains these words, so they do not count as theirs.
kept_KNOWN = It is already remembered.
