# Run while installing: takes the links out of the documents in ${docs} that lead to what is in the checkout alone, and out of
# README.md what is about the checkout.
set(in_checkout "(src|tests|templates|include|python|tools|(docs/)?decisions|CONTRIBUTING\\.md|deps\\.toml)")
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${docs}")
file(GLOB_RECURSE pages "${root}/docs/*.md" "${root}/examples/*.md")
foreach(page IN LISTS pages ITEMS "${root}/README.md")
  file(READ "${page}" text)
  string(REGEX REPLACE "\\[([^]\n]+)\\]\\((\\.\\./)*${in_checkout}[^)\n]*\\)" "\\1" text "${text}")
  file(WRITE "${page}" "${text}")
endforeach()
file(READ "${root}/README.md" text)
string(REGEX REPLACE "\\| to change Graft: [^\n]*\n" "" text "${text}")
file(WRITE "${root}/README.md" "${text}")
