"""The gateway: messages of WhatsApp and other channels in and out of the agent."""
