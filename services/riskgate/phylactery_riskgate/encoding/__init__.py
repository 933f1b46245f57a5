"""RiskGate's answers as protobuf messages, and the requests' parts as plain values."""
