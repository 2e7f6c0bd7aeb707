// All moves of one host, as their source and as their target.
#pragma once

#include "relocation/unit_mover.hpp"

namespace zlink::detail {

class host_runtime;

class moves final : public unit_mover {
public:
  explicit moves(host_runtime& host) noexcept : host_(host) {}
  moves(const moves&) = delete;
  moves& operator=(const moves&) = delete;

  task<unit_end> move(relocation_unit unit, placement::node_identity target, steady_time deadline) override;
  bool quiet() const noexcept override { return true; }

private:
  host_runtime& host_;
};

} // namespace zlink::detail
