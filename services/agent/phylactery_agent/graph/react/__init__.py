"""The react graph: seed 002's neutral ReAct archetype, static and with a model, every effect through RiskGate."""
