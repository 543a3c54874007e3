#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace triptych {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string_view StopStrings::matched() const {
  return stopped() ? std::string_view(stops_[matched_]) : std::string_view();
}

/// The longest stop string that ends at byte `end` of the held text.
size_t StopStrings::match_ending_at(size_t end) const {
  const std::string_view text = std::string_view(held_).substr(0, end);
  size_t best = kNone;
  for (size_t i = 0; i < stops_.size(); ++i) {
    const bool longer = best == kNone || stops_[i].size() > stops_[best].size();
    if (longer && text.ends_with(stops_[i])) best = i;
  }
  return best;
}

/// Length of the longest end of the held text that begins a stop string.
size_t StopStrings::held_length() const {
  const std::string_view text = held_;
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    const std::string_view whole = stop;
    for (size_t n = std::min(whole.size() - 1, text.size()); n > longest; --n) {
      if (text.ends_with(whole.substr(0, n))) longest = n;
    }
  }
  return longest;
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped()) return {};
  const size_t already = held_.size();
  held_ += piece;
  for (size_t end = already + 1; end <= held_.size(); ++end) {
    const size_t match = match_ending_at(end);
    if (match == kNone) continue;
    matched_ = match;
    std::string text = held_.substr(0, end - stops_[match].size());
    held_.clear();
    return text;
  }
  const size_t keep = held_length();
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return text;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace triptych
