#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace triptych::cli {

struct InspectOptions {
  SessionOptions session;
  std::vector<std::string> images;
  bool json = false;
};

/// `triptych inspect`: what a checkpoint is, what a picture costs, what memory it takes.
Status run_inspect(const InspectOptions& options);

}  // namespace triptych::cli
