"""The WhatsApp Cloud API: webhooks in, Graph API out."""
