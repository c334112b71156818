// The machines that a session is made of. Each decides one thing, owns what it knows for that, and uses only those
// above it here. `attempts` and `recovery`, which use all of them, decide how runs go on.
#pragma once

#include "run/host_copies.hpp"
#include "run/plan_changes.hpp"
#include "run/steps_ahead.hpp"

namespace troupe {

struct session_parts {
  session_parts(const std::vector<device_info>& infos, ledger_accounts accounts, std::shared_ptr<session_plans> all,
                completion_mode completion, bool follows_speeds)
      : plans(std::move(all)), devices(infos, *plans), installed(std::move(accounts), commands), todo(commands),
        memory(*plans, installed), copies(*plans, devices, commands), controls(commands),
        book(commands, installed, controls, memory), ahead(*plans, installed, todo, book, commands, completion),
        changes(*plans, todo, follows_speeds) {}
  session_parts(const session_parts&) = delete; // they refer to each other
  session_parts& operator=(const session_parts&) = delete;

  std::vector<command> commands;
  const std::shared_ptr<session_plans> plans;
  session_devices devices; // that are lost or leave
  installations installed; // bound plans on devices, and their arena slots
  agenda todo;             // what is to be done next, and what waits for a plan
  memory_queue memory;     // who gets memory, and who waits for it
  host_copies copies;      // runs that wait for inputs from devices
  control_chunks controls; // control-flow chunks that have begun
  run_book book;           // runs that are not answered, and executions
  steps_ahead ahead;       // the run that is likely to follow
  plan_changes changes;    // plans for other speeds of the devices
};

} // namespace troupe
