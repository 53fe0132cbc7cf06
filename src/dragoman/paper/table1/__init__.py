"""Table 1: what four kinds of layer cost."""
