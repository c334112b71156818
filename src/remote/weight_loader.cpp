#include "remote/weight_loader.hpp"

#include "remote/values.hpp"

#include <atomic>
#include <future>

namespace troupe::remote {
namespace {

void fill_in(wire::decoded_plan& p, const hash128& content, const tensor& bytes) {
  weight& leaf = *p.leaves.at(content);
  wire::fill(leaf, from_blob(leaf.type, leaf.dims, to_blob(bytes)));
}

} // namespace

offered_leaves::~offered_leaves() {
  for (const hash128& key : keys_)
    in_.withdraw(key);
}

offered_weight offered_leaves::add(const hash128& content, const tensor& leaf) {
  const hash128 key = keys_.emplace_back(new_key());
  in_.offer(key, to_blob(leaf));
  return {content, key};
}

void weight_loader::load(wire::decoded_plan& p, device_index self, offered_leaves& offered, loaded_bytes& loaded,
                         const load_told& told) {
  const std::vector<hash128> missing = load_from_here(p, self, offered, loaded);
  load_report report(told);
  for (const hash128& content : missing)
    report.expect(bytes_of(p.leaves.at(content)->type, volume(p.leaves.at(content)->dims)));
  for (const hash128& content : missing) {
    const failure why = capture([&] {
      const tensor leaf = fetch(content, *p.leaves.at(content), loaded, report);
      report.end(leaf.bytes());
      fill_in(p, content, leaf);
      line_.say(have_weights{{offered.add(content, leaf)}});
    });
    if (!why.failed())
      continue;
    line_.say(give_up_weight{content}); // others may wait for it
    fail(why.code, "{}", why.message);
  }
}

/// Returns what is not here.
std::vector<hash128> weight_loader::load_from_here(wire::decoded_plan& p, device_index self, offered_leaves& offered,
                                                   loaded_bytes& loaded) {
  have_weights found;
  const auto take = [&](const hash128& content, const tensor& leaf) {
    fill_in(p, content, leaf);
    found.weights.push_back(offered.add(content, leaf));
    loaded.here += leaf.bytes();
  };
  std::vector<hash128> missing = wire::leaves_needed(*p.source, self);
  std::vector<std::pair<hash128, tensor>> here;
  for (const hash128& content : missing) {
    const weight& leaf = *p.leaves.at(content);
    if (tensor bytes = shared_.weights.find(content, leaf.type, leaf.dims); bytes.defined())
      here.emplace_back(content, std::move(bytes));
  }
  drop_unproven(here);
  for (const auto& [content, bytes] : here) {
    take(content, bytes);
    std::erase(missing, content);
  }
  // Without a proof: every session may use what the owner's models have.
  if (shared_.models && !missing.empty())
    for (const auto& [content, bytes] : shared_.models->find(missing)) {
      take(content, shared_.weights.share(content, bytes));
      std::erase(missing, content);
    }
  if (!found.weights.empty())
    line_.say(std::move(found));
  return missing;
}

void weight_loader::drop_unproven(std::vector<std::pair<hash128, tensor>>& found) {
  prove_weights wanted{.challenge = random_key(), .contents = {}};
  std::vector<tensor> blobs;
  for (const auto& [content, bytes] : found)
    if (!shown_.contains(content)) {
      wanted.contents.push_back(content);
      blobs.push_back(to_blob(bytes));
    }
  if (blobs.empty())
    return;
  {
    const std::lock_guard lock(mutex_);
    challenged_ = wanted;
    proofs_.reset();
  }
  line_.say(wanted);
  std::vector<hash128> expected; // while the session does the same
  expected.reserve(blobs.size());
  for (const tensor& blob : blobs)
    expected.push_back(content_proof(wanted.challenge, blob));
  std::unique_lock lock(mutex_);
  told_.wait(lock, [&] { return proofs_ || !closed_.empty(); });
  if (!proofs_)
    fail(errc::device_lost, "{}", closed_);
  for (size_t i = 0; i < expected.size(); ++i)
    if ((*proofs_)[i] == expected[i])
      shown_.insert(wanted.contents[i]);
  std::erase_if(found, [&](const auto& entry) { return !shown_.contains(entry.first); });
}

tensor weight_loader::fetch(const hash128& content, const weight& leaf, loaded_bytes& loaded, load_report& report) {
  const weight_source source = ask({.content = content});
  weight_writer to = shared_.weights.begin(content, leaf.type, leaf.dims);
  if (!source.peer.empty()) {
    tensor passed_on;
    const weight_fault fault = fetch_from(source, to, passed_on);
    if (fault == weight_fault::none) { // from a peer that the session has sent us to, with a key of that one's
      shown_.insert(content);
      loaded.peers += passed_on.bytes();
      return passed_on;
    }
    if (!ask({content, fault}).peer.empty())
      fail(errc::invalid_input, "a second worker is named for a weight that is to come from the session's process");
  }
  const auto pull = [&](const hash128& key, tensor blob, pull_done done) {
    puller_->pull(key, std::move(blob), std::move(done), [&](int64_t came, int64_t) { report.show(came); });
  };
  pull_and_wait(pull, content, to.destination());
  tensor sent = shared_.weights.commit(to);
  shown_.insert(content);
  loaded.session += sent.bytes();
  return sent;
}

weight_fault weight_loader::fetch_from(const weight_source& peer, weight_writer& to, tensor& leaf) {
  failure why = capture([&] { pull_from(peer, to.destination()); });
  const bool is_refused = why.failed() && why.code == errc::device_failed;
  if (!why.failed())
    why = capture([&] { leaf = shared_.weights.commit(to); });
  if (!why.failed())
    return weight_fault::none;
  line_.log("peer_failed", {{"peer", peer.peer}, {"why", why.message}});
  return is_refused ? weight_fault::refused : weight_fault::useless;
}

/// The peer is given up if nothing comes for as long as one may be away: the session's process has the bytes, too.
void weight_loader::pull_from(const weight_source& peer, const tensor& to) {
  std::promise<failure> ended;
  const auto came = std::make_shared<std::atomic<int64_t>>(0); // may be told after the end
  std::stop_source stop;
  const std::stop_callback with_session(line_.ended(), [&] { stop.request_stop(); });
  shared_.others.try_pull(peer.peer, {.key = peer.key,
                                      .blob = to,
                                      .done = [&](const failure& why) { ended.set_value(why); },
                                      .stop = stop.get_token(),
                                      .on_progress = [came](int64_t bytes, int64_t) { *came = bytes; }});
  const auto patience = shared_.options.peer_patience;
  std::future<failure> end = ended.get_future();
  bool is_silent = false;
  for (int64_t before = 0; !is_silent && end.wait_for(patience) == std::future_status::timeout;) {
    const int64_t now = *came;
    is_silent = now == before;
    before = now;
  }
  if (is_silent)
    stop.request_stop();
  const failure why = end.get();
  if (why.failed() && is_silent)
    fail(errc::io, "nothing has come from it for {} s", std::chrono::duration<double>(patience).count());
  if (why.failed())
    fail(why.code, "{}", why.message);
}

weight_source weight_loader::ask(const want_weight& wish) {
  {
    const std::lock_guard lock(mutex_);
    asked_ = wish.content;
    answer_.reset();
  }
  line_.say(wish);
  std::unique_lock lock(mutex_);
  told_.wait(lock, [&] { return answer_ || !closed_.empty(); });
  if (!answer_)
    fail(errc::device_lost, "{}", closed_);
  return *std::move(answer_);
}

void weight_loader::tell(weight_source source) {
  const std::lock_guard lock(mutex_);
  if (asked_ != source.content)
    fail(errc::invalid_input, "the source of a weight is told that was not asked for");
  asked_.reset();
  answer_ = std::move(source);
  told_.notify_all();
}

void weight_loader::tell(weight_proofs answer) {
  const std::lock_guard lock(mutex_);
  if (!challenged_ || challenged_->challenge != answer.challenge ||
      challenged_->contents.size() != answer.proofs.size())
    fail(errc::invalid_input, "weights are proven that were not asked for");
  challenged_.reset();
  proofs_ = std::move(answer.proofs);
  told_.notify_all();
}

void weight_loader::close(const std::string& why) {
  const std::lock_guard lock(mutex_);
  closed_ = why.empty() ? "the link has ended" : why;
  told_.notify_all();
}

} // namespace troupe::remote
