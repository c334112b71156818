// Text that Prometheus scrapes: the exposition format, version 0.0.4.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::monitoring {

/// One sample of a metric: its label's value, unless the metric has no label.
struct metric_sample {
  std::string label;
  double value = 0;
};

/// Returns a label's value as it is written between quotes.
std::string escaped_label(std::string_view value);

/// Adds a metric to `out`: its help, its type ("counter" or "gauge") and its samples. `label`: the name of their label;
/// empty: they have none. Without samples, nothing.
void add_metric(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                std::string_view label, const std::vector<metric_sample>& samples);

} // namespace troupe::monitoring
