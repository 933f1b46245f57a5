"""The phylactery command."""

import os

# gRPC's C core would write its own notes about closed connections between a person's lines; it reads this at import.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
