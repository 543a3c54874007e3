#pragma once

#include "ops/linear.h"

namespace triptych {

/// KernelTable::pack_weight for kPanel16. Rows beyond N in the last panel and the odd element of K
/// are made zero by the call that writes their neighbours.
void pack_weight_panels(const PackWeightArgs& args, const Stream& stream);

}  // namespace triptych
