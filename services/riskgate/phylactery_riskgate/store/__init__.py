"""What RiskGate keeps, and all the SQL there is. Every function takes the tenant, so that no query can forget it."""
