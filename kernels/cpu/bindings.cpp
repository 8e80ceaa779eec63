// The Python face of the native backend; the stub _cpu.pyi documents it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "draw.h"
#include "formats.h"
#include "model.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<const int32_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Logits = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span_of(const Array& array) {
    return std::span(array.data(), array.size());
}

using Tensors = std::vector<std::tuple<std::string, int, std::vector<int64_t>, Bytes>>;

// Keeps the arrays that the model reads alive with it.
struct PyModel {
    std::vector<Bytes> owners;
    std::unique_ptr<Model> model;
};

void construct(PyModel* self, Tensors tensors, int64_t vocab_size, int64_t context_length,
               int64_t width, int64_t ff_width, int64_t heads, int64_t kv_heads, int64_t head_dim,
               double norm_epsilon, double embedding_scale, double attention_scale,
               double attention_cap, double logit_cap, int64_t experts, int64_t experts_used,
               bool normalise_experts, const std::string& activation, bool rope_interleaved,
               bool qkv_bias, bool qk_norm, bool post_norms, bool tied_output,
               const std::vector<int64_t>& windows, const std::vector<int64_t>& ropes,
               const std::vector<std::vector<double>>& frequencies,
               const std::vector<double>& magnitudes, int64_t pages, int64_t threads, bool half_kv,
               bool int8_activations, const std::string& isa) {
    const ModelOptions options{
        vocab_size,    context_length,   width,        ff_width,         heads,
        kv_heads,      head_dim,         norm_epsilon, embedding_scale,  attention_scale,
        attention_cap, logit_cap,        experts,      experts_used,     normalise_experts,
        activation,    rope_interleaved, qkv_bias,     qk_norm,          post_norms,
        tied_output,   windows,          ropes,        frequencies,      magnitudes,
        pages,         threads,          half_kv,      int8_activations, isa};
    auto made = std::make_unique<PyModel>();
    std::vector<TensorView> views;
    for (const auto& [name, type, shape, data] : tensors) {
        views.push_back({name, type, shape, span_of(data)});
    }
    {
        nb::gil_scoped_release release;
        made->model = std::make_unique<Model>(options, views);
    }
    for (auto& [name, type, shape, data] : tensors) {
        if (name == "token_embd.weight") made->owners.push_back(std::move(data));
    }
    new (self) PyModel(std::move(*made));
}

void forward(PyModel& self, const Ints& tokens, const Ints& query_start, const Ints& context_start,
             const Ints& pages, const Ints& page_start, const Ints& logit_tokens,
             const Logits& logits, const std::optional<Ints>& head_panels) {
    PlanView plan{span_of(tokens), span_of(query_start), span_of(context_start),
                  span_of(pages),  span_of(page_start),  span_of(logit_tokens)};
    if (head_panels) plan.head_panels = span_of(*head_panels);
    nb::gil_scoped_release release;
    self.model->forward(plan, span_of(logits));
}

void copy_pages(PyModel& self, const Pairs& pairs) {
    nb::gil_scoped_release release;
    self.model->copy_pages(span_of(pairs));
}

void read_page(const PyModel& self, int64_t page, const WritableBytes& out) {
    nb::gil_scoped_release release;
    self.model->read_page(page, span_of(out));
}

void write_page(PyModel& self, int64_t page, const Bytes& data) {
    nb::gil_scoped_release release;
    self.model->write_page(page, span_of(data));
}

std::string panel_text(PanelKind kind) {
    if (!is_quantised(kind)) {
        return kind == PanelKind::Float ? "f32" : kind == PanelKind::Half ? "f16" : "bf16";
    }
    const PanelShape shape = panel_shape(kind);
    return std::to_string(shape.bits) + (shape.curve ? "-bit curve, " : "-bit, ") +
           (shape.min ? "scale and min" : "scale") + " per " +
           std::to_string(kBlock / shape.groups()) + (shape.wide ? " of 256" : "");
}

nb::dict panel_formats() {
    nb::dict formats;
    for (int id = 0; id < 256; ++id) {
        const Format* format = find_format(id);
        if (format == nullptr) continue;
        formats[nb::int_(id)] =
            nb::make_tuple(panel_text(format->kind), panel_bytes(format->kind, kWide));
    }
    return formats;
}

}  // namespace
}  // namespace sglite

NB_MODULE(_cpu, m) {
    // A model in use when the interpreter ends is no leak that a user should hear of.
    nanobind::set_leak_warnings(false);
    using namespace sglite;
    m.doc() = "Native CPU backend: packed weights, paged KV cache, one call a step.";
    bind_draw(m);
    m.def("available_isas", &available_isas);
    m.def("panel_formats", &panel_formats);
    nb::class_<PyModel>(m, "Model")
        .def("__init__", &construct, "tensors"_a.noconvert(), nb::kw_only(), "vocab_size"_a,
             "context_length"_a, "width"_a, "ff_width"_a, "heads"_a, "kv_heads"_a, "head_dim"_a,
             "norm_epsilon"_a, "embedding_scale"_a, "attention_scale"_a, "attention_cap"_a,
             "logit_cap"_a, "experts"_a, "experts_used"_a, "normalise_experts"_a, "activation"_a,
             "rope_interleaved"_a, "qkv_bias"_a, "qk_norm"_a, "post_norms"_a, "tied_output"_a,
             "windows"_a, "ropes"_a, "frequencies"_a, "magnitudes"_a, "pages"_a, "threads"_a,
             "half_kv"_a, "int8_activations"_a, "isa"_a)
        .def("forward", &forward, "tokens"_a.noconvert(), "query_start"_a.noconvert(),
             "context_start"_a.noconvert(), "pages"_a.noconvert(), "page_start"_a.noconvert(),
             "logit_tokens"_a.noconvert(), "logits"_a.noconvert(),
             "head_panels"_a.noconvert() = nb::none())
        .def("copy_pages", &copy_pages, "pairs"_a.noconvert())
        .def("read_page", &read_page, "page"_a, "out"_a.noconvert())
        .def("write_page", &write_page, "page"_a, "data"_a.noconvert())
        .def_prop_ro("isa", [](const PyModel& self) { return self.model->isa(); })
        .def_prop_ro("threads", [](const PyModel& self) { return self.model->threads(); });
}
