// Scientific workflows: their shapes, and the mean times and bytes of their jobs, as the generator of the Pegasus
// project has them (https://github.com/pegasus-isi/WorkflowGenerator; Bharathi et al., "Characterization of scientific
// workflows", WORKS 2008). That generator draws from normal distributions, some wider than their mean. Here each figure
// is drawn within a quarter of its mean.
#include "schedules/graph_maker.hpp"

namespace troupe {
namespace {

constexpr double second = 1e9; // of work

/// Adds jobs by their seconds; what they take and read varies by a quarter.
class workflow_maker {
public:
  workflow_maker(std::string name, uint64_t seed) : graph_(std::move(name)), random_(seed) {}

  using reads = std::vector<graph_maker::read>;

  task_id add(const char* kind, double seconds, reads of = {}) {
    // A statement draws one number: the order of arguments is the compiler's.
    for (graph_maker::read& r : of)
      r.bytes = varied(r.bytes);
    const double drawn = varied(seconds * second);
    return graph_.add(kind, drawn, std::move(of));
  }
  double varied(double mean) { return mean * random_.between(0.75, 1.25); }
  task_graph take() { return graph_.take(); }

private:
  graph_maker graph_;
  seeded_random random_;
};

} // namespace

task_graph cybershake(uint32_t ruptures, uint32_t variations, uint64_t seed) {
  check_size("the number of ruptures", ruptures, most_width);
  check_size("the number of variations", variations, most_width);
  constexpr double tensors = 2 * 231720131.58, seismogram = 24000, peak = 216; // bytes
  workflow_maker g("cybershake", seed);
  workflow_maker::reads seismograms, peaks;
  for (uint32_t i = 0; i < ruptures; ++i) {
    const task_id extract = g.add("ExtractSGT", 137.45);
    for (uint32_t j = 0; j < variations; ++j) {
      const task_id synthesis = g.add("SeismogramSynthesis", 43.4, {{extract, tensors}});
      seismograms.push_back({synthesis, seismogram});
      peaks.push_back({g.add("PeakValCalcOkaya", 1.09, {{synthesis, seismogram}}), peak});
    }
  }
  const auto count = static_cast<double>(peaks.size());
  g.add("ZipSeis", count * seismogram / 6 / 228180, std::move(seismograms));
  g.add("ZipPSA", count * peak / 6 / 2782, std::move(peaks));
  return g.take();
}

task_graph epigenomics(uint32_t lanes, uint32_t splits, uint64_t seed) {
  check_size("the number of lanes", lanes, most_width);
  check_size("the number of splits", splits, most_width);
  workflow_maker g("epigenomics", seed);
  workflow_maker::reads merged;
  double merged_bytes = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const double all = g.varied(351024865.91), part = all / splits, clean = part / 2;
    const double sanger = clean / 1.32, binary = sanger / 4.24, mapped = binary / 0.92;
    const task_id split = g.add("fastqSplit", all / 7663927.38);
    workflow_maker::reads maps;
    for (uint32_t i = 0; i < splits; ++i) {
      const task_id filter = g.add("filterContams", part / 8474776.63, {{split, part}});
      const task_id convert = g.add("sol2sanger", clean / 15073990.1, {{filter, clean}});
      const task_id pack = g.add("fastq2bfq", sanger / 6797390.86, {{convert, sanger}});
      maps.push_back({g.add("map", binary / 369551.55, {{pack, binary}}), mapped});
    }
    const double lane_bytes = mapped * splits / 1.06;
    merged.push_back({g.add("mapMerge", mapped * splits / 2267233.18, std::move(maps)), lane_bytes});
    merged_bytes += lane_bytes;
  }
  graph_maker::read last = merged[0];
  if (lanes > 1)
    last = {g.add("mapMerge", merged_bytes / 2267233.18, std::move(merged)), merged_bytes / 1.06};
  const double index_bytes = last.bytes / 64.25;
  const task_id index = g.add("maqIndex", last.bytes / 17679204.35, {last});
  g.add("pileup", index_bytes / 881356.45, {{index, index_bytes}});
  return g.take();
}

task_graph inspiral(uint32_t groups, uint32_t width, uint64_t seed) {
  check_size("the number of groups", groups, most_width);
  check_size("the width", width, most_width);
  constexpr double bank = 986917.26, found = 312935.68, coincident = 33820.71, trigger = 12779.67; // bytes
  workflow_maker g("inspiral", seed);
  for (uint32_t group = 0; group < groups; ++group) {
    workflow_maker::reads upper, lower;
    for (uint32_t i = 0; i < width; ++i) {
      const task_id templates = g.add("TmpltBank", 18.14);
      upper.push_back({g.add("Inspiral", 460.21, {{templates, bank}}), found});
    }
    const task_id thinca = g.add("Thinca", 5.37, std::move(upper));
    for (uint32_t i = 0; i < width; ++i) {
      const task_id triggers = g.add("TrigBank", 5.11, {{thinca, coincident}});
      lower.push_back({g.add("Inspiral", 460.21, {{triggers, trigger}}), found});
    }
    g.add("Thinca", 5.37, std::move(lower));
  }
  return g.take();
}

task_graph sipht(uint32_t replicons, uint32_t patsers, uint64_t seed) {
  check_size("the number of replicons", replicons, most_width);
  check_size("the number of Patser jobs", patsers, most_width);
  constexpr double site = 91780.15, sequence = 84073, terminators = 34382464; // bytes
  workflow_maker g("sipht", seed);
  for (uint32_t i = 0; i < replicons; ++i) {
    workflow_maker::reads sites;
    for (uint32_t p = 0; p < patsers; ++p)
      sites.push_back({g.add("Patser", 1.27), site});
    const task_id concatenated = g.add("Patser_concate", 0.08, std::move(sites));
    const task_id findterm = g.add("Findterm", 1349.47), motif = g.add("RNAMotif", 36.42);
    const task_id transterm = g.add("Transterm", 55.78), blast = g.add("Blast", 2350.58);
    const task_id srna =
        g.add("SRNA", 361.33, {{findterm, terminators}, {motif, 1053820.5}, {transterm, 440505.5}, {blast, 5271234}});
    const task_id parsed = g.add("FFN_Parse", 1.64, {{srna, sequence}});
    const task_id candidates = g.add("Blast_candidate", 5.18, {{srna, sequence}});
    const task_id qrna = g.add("Blast_QRNA", 1412.09, {{srna, sequence}});
    const task_id synteny = g.add("Blast_synteny", 33, {{srna, sequence}, {parsed, 802506.75}});
    const task_id paralogues = g.add("Blast_paralogues", 4.99, {{srna, sequence}});
    g.add("SRNA_annotate", 1.68,
          {{srna, sequence + 331823.5},
           {concatenated, site * patsers},
           {candidates, 14937.5},
           {qrna, 175489.75},
           {synteny, 1146801.25},
           {paralogues, 690731.5}});
  }
  return g.take();
}

} // namespace troupe
