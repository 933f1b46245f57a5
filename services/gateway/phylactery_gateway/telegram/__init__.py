"""The Telegram Bot API: updates by webhook in, methods out."""
