// The Python face of Vocabulary.
#pragma once

#include <nanobind/nanobind.h>

namespace sglite {

void bind_vocabulary(nanobind::module_& m);

}  // namespace sglite
