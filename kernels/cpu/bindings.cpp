#include <nanobind/nanobind.h>

#include "draw.h"

NB_MODULE(_cpu, m) {
  m.doc() = "native part of sglite";
  sglite::bind_draw(m);
}
