#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "observe/metrics.h"

namespace triptych {

/// A page of metrics read as a strict scraper does, and all that is wrong with it: samples without
/// a family, families twice or in pieces, samples twice, labels that differ within a family,
/// buckets that fall or do not end in the count, numbers that are none.
class MetricsPage {
 public:
  MetricsPage(std::string_view page, MetricsFormat format)
      : open_(format == MetricsFormat::kOpenMetrics) {
    if (page.empty() || page.back() != '\n') fault("the last line has no end");
    if (page.find('\r') != std::string_view::npos) fault("there is a carriage return");
    while (!page.empty()) {
      const size_t end = std::min(page.find('\n'), page.size());
      take_line(page.substr(0, end));
      page.remove_prefix(std::min(end + 1, page.size()));
    }
    if (open_ && !ended_) fault("there is no # EOF");
    for (const auto& [series, buckets] : buckets_) check_buckets(series, buckets);
  }

  const std::vector<std::string>& faults() const { return faults_; }
  /// By name and labels, as they stand on the page.
  const std::map<std::string, double>& samples() const { return samples_; }
  const std::map<std::string, std::string>& types() const { return types_; }  ///< by family
  const std::vector<std::string>& exemplars() const { return exemplars_; }
  /// The value of a sample; not a number when there is none.
  double value(const std::string& sample) const {
    const auto found = samples_.find(sample);
    return found == samples_.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }

 private:
  struct Buckets {
    std::vector<std::pair<double, double>> edges;  ///< and counts
    double count = -1;
    bool has_sum = false;
  };

  void fault(const std::string& what) { faults_.push_back(what); }

  void take_line(std::string_view line) {
    if (ended_) fault("something behind # EOF: " + std::string(line));
    if (line == "# EOF" && open_) {
      ended_ = true;
    } else if (line.starts_with("# HELP ")) {
      begin_family(word(line.substr(7)));
    } else if (line.starts_with("# TYPE ")) {
      const std::string name = word(line.substr(7));
      if (name != family_) fault("TYPE without HELP: " + name);
      types_[name] = line.substr(8 + name.size());
    } else if (line.starts_with("#") || line.empty()) {
      fault("a line that says nothing: " + std::string(line));
    } else {
      take_sample(line);
    }
  }

  static std::string word(std::string_view text) {
    return std::string(text.substr(0, std::min(text.find(' '), text.size())));
  }

  void begin_family(const std::string& name) {
    if (!families_.insert(name).second) fault("a family twice: " + name);
    if (!is_name(name, ":")) fault("no name of a metric: " + name);
    family_ = name;
    label_names_.reset();
  }

  static bool is_name(std::string_view name, std::string_view extra) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (const char c : name) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter && !(c >= '0' && c <= '9') && c != '_' && extra.find(c) == extra.npos) {
        return false;
      }
    }
    return true;
  }

  void take_sample(std::string_view line) {
    const std::string_view whole = line;
    const std::string name(line.substr(0, std::min(line.find_first_of("{ "), line.size())));
    line.remove_prefix(name.size());
    std::map<std::string, std::string> labels;
    if (line.starts_with("{") && !take_labels(line, labels)) {
      return fault("labels that cannot be read: " + std::string(whole));
    }
    const std::string key(whole.substr(0, whole.size() - line.size()));
    if (!line.starts_with(" ")) return fault("no blank in front of the value: " + key);
    line.remove_prefix(1);
    const std::string number = word(line);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') fault("no number: " + std::string(whole));
    line.remove_prefix(number.size());
    if (!line.empty()) take_exemplar(line, name);
    if (!samples_.emplace(key, value).second) fault("a sample twice: " + key);
    file_sample(name, labels, value);
  }

  /// `{a="b",c="d"}`, with what is escaped in values.
  static bool take_labels(std::string_view& line, std::map<std::string, std::string>& labels) {
    line.remove_prefix(1);
    while (!line.starts_with("}")) {
      const size_t equals = line.find("=\"");
      if (equals == line.npos || !is_name(line.substr(0, equals), "")) return false;
      const std::string name(line.substr(0, equals));
      line.remove_prefix(equals + 2);
      std::string value;
      while (!line.empty() && line.front() != '"') {
        const bool escaped = line.front() == '\\';
        if (escaped) line.remove_prefix(1);
        if (line.empty()) return false;
        if (escaped && std::string_view("\\\"n").find(line.front()) == line.npos) return false;
        value += escaped && line.front() == 'n' ? '\n' : line.front();
        line.remove_prefix(1);
      }
      if (line.empty() || !labels.emplace(name, value).second) return false;
      line.remove_prefix(1);
      if (line.starts_with(",")) line.remove_prefix(1);
    }
    line.remove_prefix(1);
    return true;
  }

  void take_exemplar(std::string_view line, const std::string& name) {
    exemplars_.push_back(name + std::string(line));
    std::map<std::string, std::string> labels;
    if (!open_ || !name.ends_with("_bucket") || !line.starts_with(" # {")) {
      return fault("what is behind the value? " + exemplars_.back());
    }
    line.remove_prefix(3);
    if (!take_labels(line, labels)) fault("an exemplar without labels: " + exemplars_.back());
  }

  /// Under its family: which names and labels fit there.
  void file_sample(const std::string& name, std::map<std::string, std::string> labels,
                   double value) {
    const std::string& type = types_[family_];
    const std::string suffix = name.starts_with(family_) ? name.substr(family_.size()) : "none";
    bool fits = suffix.empty() && type == "gauge";
    if (type == "counter") fits = open_ ? suffix == "_total" : name.ends_with("_total");
    if (type == "histogram") fits = suffix == "_bucket" || suffix == "_sum" || suffix == "_count";
    if (suffix == "none" || !fits) {
      return fault("a sample outside its family: " + name + " in " + family_);
    }
    if (type == "counter" && !(value >= 0)) fault("a count below zero: " + name);
    std::string edge;
    if (suffix == "_bucket") {
      edge = labels["le"];
      labels.erase("le");
    }
    std::string series = family_;
    std::set<std::string> names;
    for (const auto& [label, text] : labels) {
      series += "," + label + "=" + text;
      names.insert(label);
    }
    if (label_names_ == nullptr) label_names_ = std::make_unique<std::set<std::string>>(names);
    if (*label_names_ != names) fault("other labels than its family: " + name);
    if (type != "histogram") return;
    Buckets& buckets = buckets_[series];
    if (suffix == "_bucket") buckets.edges.emplace_back(std::strtod(edge.c_str(), nullptr), value);
    if (suffix == "_count") buckets.count = value;
    if (suffix == "_sum") buckets.has_sum = true;
  }

  void check_buckets(const std::string& series, const Buckets& buckets) {
    if (buckets.edges.empty() || !buckets.has_sum) return fault("half a histogram: " + series);
    for (size_t i = 1; i < buckets.edges.size(); ++i) {
      if (buckets.edges[i - 1].first >= buckets.edges[i].first) fault("edges fall: " + series);
      if (buckets.edges[i - 1].second > buckets.edges[i].second) fault("buckets fall: " + series);
    }
    if (buckets.edges.back().first != std::numeric_limits<double>::infinity()) {
      fault("no last bucket: " + series);
    }
    if (buckets.edges.back().second != buckets.count) fault("another count: " + series);
  }

  bool open_;
  bool ended_ = false;
  std::string family_;
  std::unique_ptr<std::set<std::string>> label_names_;  ///< of the family; null before its samples
  std::set<std::string> families_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
  std::map<std::string, Buckets> buckets_;
  std::vector<std::string> exemplars_;
  std::vector<std::string> faults_;
};

}  // namespace triptych
