// An excerpt of a real log, for machines that keep none.
#pragma once

#include <string>

extern const std::string small_log;
