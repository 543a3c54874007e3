#pragma once

#include <string_view>

#include "base/json.h"

namespace triptych {

/// What transformers' configuration class of `model_type` gives for members that a config.json
/// leaves out; null for a model type that we do not know. Members whose default is None are left
/// out too.
const Json* config_defaults(std::string_view model_type);

}  // namespace triptych
