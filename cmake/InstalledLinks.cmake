# Runs during the installation: removes links to files that exist only in the checkout from the documents in ${docs}, and
# removes the parts of README.md that are about the checkout.
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
