"""One turn: context, gate, model session, trail and durable writes."""
