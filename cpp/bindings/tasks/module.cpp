#include "common.hpp"

namespace maxmargin {
void bind_items(nb::module_& module);
void bind_link_features(nb::module_& module);
void bind_list_passes(nb::module_& module);
void bind_mentions(nb::module_& module);
void bind_mert(nb::module_& module);
void bind_nbest_scan(nb::module_& module);
void bind_ngram_table(nb::module_& module);
void bind_list_metrics(nb::module_& module);
void bind_quality(nb::module_& module);
void bind_relations(nb::module_& module);
void bind_scan_grid(nb::module_& module);
void bind_string_table(nb::module_& module);
void bind_symmetrize(nb::module_& module);
void bind_texts(nb::module_& module);
void bind_token_attributes(nb::module_& module);
void bind_word_clusters(nb::module_& module);
void bind_token_scan(nb::module_& module);
void bind_translation(nb::module_& module);
void bind_trees(nb::module_& module);
}  // namespace maxmargin

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of the tasks; use the Python classes around them.";
    // Word tables may live in globals until the interpreter exits; that is not a leak.
    nanobind::set_leak_warnings(false);
    maxmargin::bind_string_table(module);
    maxmargin::bind_ngram_table(module);
    maxmargin::bind_texts(module);
    maxmargin::bind_quality(module);
    maxmargin::bind_mert(module);
    maxmargin::bind_list_passes(module);
    maxmargin::bind_nbest_scan(module);
    maxmargin::bind_list_metrics(module);
    maxmargin::bind_relations(module);
    maxmargin::bind_scan_grid(module);
    maxmargin::bind_items(module);
    maxmargin::bind_link_features(module);
    maxmargin::bind_symmetrize(module);
    maxmargin::bind_token_attributes(module);
    maxmargin::bind_word_clusters(module);
    maxmargin::bind_mentions(module);
    maxmargin::bind_token_scan(module);
    maxmargin::bind_translation(module);
    maxmargin::bind_trees(module);
    maxmargin::bind_common(module);
}
