// The fixture's failing stores, under the names that tests of this project use.
#pragma once

#include "zlink/testing/store_faults.hpp"

namespace zlink::test {

using testing::faulty_location_store;
using testing::faulty_relocation_store;
using testing::store_call;
using testing::store_fault;
using testing::store_faults;
using testing::store_operation;

} // namespace zlink::test
