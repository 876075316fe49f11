# near_miss_cases.py - shared parts of the operators' lists of near misses (src/ops/<op>/<op>_near_misses.py).
IMAGE = "(float[N,4,3,5] x) => (float[N,4,3,5] y)"
TWO_INPUTS = "(float[N,4,3,5] x, float[N,4,3,5] z) => (float[N,4,3,5] y)"

# A network gets those of these initializers, and of its operator's, that its text names.
CONSTANTS = {
    "eps": "float eps = {1e-12}",
    "eps_large": "float eps_large = {1e-3}",
    "eps_negative": "float eps_negative = {-1e-3}",
}
