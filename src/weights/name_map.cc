#include "weights/name_map.h"

#include <array>

namespace triptych {
namespace {

struct PrefixRule {
  std::string_view from;
  std::string_view to;
};

// The first prefix that matches wins, so longer spellings of a part come before shorter ones.
constexpr std::array kRules = {
    PrefixRule{"model.multi_modal_projector.", "proj."},
    PrefixRule{"multi_modal_projector.", "proj."},

    // Towers with and without the vision_model level (dropped by transformers 5.6).
    PrefixRule{"model.vision_tower.vision_model.", "vision."},
    PrefixRule{"vision_tower.vision_model.", "vision."},
    PrefixRule{"model.vision_tower.", "vision."},
    PrefixRule{"vision_tower.", "vision."},
    PrefixRule{"vision_model.", "vision."},

    PrefixRule{"model.language_model.lm_head.", "lm_head."},
    PrefixRule{"language_model.lm_head.", "lm_head."},
    PrefixRule{"lm_head.", "lm_head."},

    // language_model.model.* is the old tree, model.language_model.* the one since 4.52.
    PrefixRule{"model.language_model.model.", "text."},
    PrefixRule{"language_model.model.", "text."},
    PrefixRule{"model.language_model.", "text."},
    PrefixRule{"language_model.", "text."},
    // Text-only checkpoints, saved with and without their head.
    PrefixRule{"model.layers.", "text.layers."},
    PrefixRule{"model.embed_tokens.", "text.embed_tokens."},
    PrefixRule{"model.norm.", "text.norm."},
    PrefixRule{"layers.", "text.layers."},
    PrefixRule{"embed_tokens.", "text.embed_tokens."},
    PrefixRule{"norm.", "text.norm."},
};

}  // namespace

std::string canonical_name(std::string_view original) {
  for (const PrefixRule& rule : kRules) {
    if (original.starts_with(rule.from)) {
      return std::string(rule.to).append(original.substr(rule.from.size()));
    }
  }
  return std::string(original);
}

}  // namespace triptych
