// The filters and the handler of one dispatch.
#pragma once

#include "zlink/execution/operation.hpp"
#include "zlink/execution/payload.hpp"
#include "zlink/filter.hpp"

#include <exception>
#include <memory>
#include <vector>

namespace zlink::detail {

struct function_handler;
struct record;
class execution_object;

class filter_chain {
public:
  filter_chain(std::vector<std::unique_ptr<message_filter>> filters, function_handler& handler,
               execution_object& object, record& served, const message_context& context, dispatch_kind kind);
  filter_chain(const filter_chain&) = delete;
  filter_chain& operator=(const filter_chain&) = delete;

  /// From the first filter to its end. The reply is the handler's, whatever filters make of its end; one that lets
  /// nothing pass makes a request `rejected`.
  static task<payload> run(std::unique_ptr<filter_chain> chain);
  /// What stands at that place: a filter, or behind them the handler.
  task<void> enter(std::size_t place);

private:
  task<void> serve();

  std::vector<std::unique_ptr<message_filter>> filters_;
  std::vector<filter_next> nexts_;
  function_handler& handler_;
  execution_object& object_;
  record& served_;
  filter_context context_;
  payload reply_;
  bool begun_ = false;
  std::exception_ptr failure_; ///< of the handler
  counted_ptr<operation<void>> handled_; ///< ends with the handler, which a filter may not have waited for
};

} // namespace zlink::detail
