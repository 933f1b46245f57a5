"""Policy bundles: activation, shadow, signing and the live bundle."""
