"""The react graph: a neutral ReAct graph, static and with a model, every effect through RiskGate."""
