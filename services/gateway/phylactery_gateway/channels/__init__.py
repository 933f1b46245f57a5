"""What every messaging channel is to the gateway: its messages, and the port it implements."""
