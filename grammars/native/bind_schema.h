// JSON Schema for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace sglite {

void bind_schema(nanobind::module_& m);

}  // namespace sglite
