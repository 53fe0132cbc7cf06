"""Training on several devices or machines."""
