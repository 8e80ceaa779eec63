// The Python faces of Grammar and Matcher.
#pragma once

#include <nanobind/nanobind.h>

namespace sglite {

void bind_matcher(nanobind::module_& m);

}  // namespace sglite
