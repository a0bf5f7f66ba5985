"""The controls behind Settings: what compares, the parameters of the measure, the speed of the generator."""
