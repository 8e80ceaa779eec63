#include <nanobind/nanobind.h>

NB_MODULE(_cpu, m) { m.doc() = "native part of sglite"; }
