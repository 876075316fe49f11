// The result of `graft doctor` in words.
#pragma once

#include "graft/report/doctor.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

[[nodiscard]] Listing doctor_text(const report::DoctorReport& report);

}  // namespace graft::present
