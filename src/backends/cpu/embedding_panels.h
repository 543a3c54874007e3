#pragma once

#include "ops/embedding.h"

namespace triptych {

/// KernelTable::embedding for kPanel16: picks rows out of the panels and widens them.
void embedding_panels(const EmbeddingArgs& args, const Stream& stream);

}  // namespace triptych
