"""The policy engine: binding, Cedar policies, budgets, reasons and explanations."""
