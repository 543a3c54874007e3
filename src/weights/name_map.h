#pragma once

#include <string>
#include <string_view>

namespace triptych {

/// Canonical name of a tensor of the LLaVA family or of a text-only decoder, whichever release of
/// transformers wrote it (before 4.52, 4.52 to 5.5, 5.6 and later name the same tensor
/// differently). Parts: `text.` decoder, `lm_head.`, `vision.` tower, `proj.` projector; what
/// follows the part is spelled as transformers does ("text.layers.0.mlp.up_proj.weight",
/// "vision.encoder.layers.3.layer_norm1.bias", "proj.linear_1.weight"). A name of no known part
/// comes back unchanged: strict loading then reports it, nothing is dropped here.
std::string canonical_name(std::string_view original);

}  // namespace triptych
