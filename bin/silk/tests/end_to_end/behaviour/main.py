"""The behavioural suite: main.py OWN PEER SOCKET PORT [FILE or CASE …]. It makes system calls and says what they answer,
a line for each, `case: step = result`; the helper on PEER listens at SOCKET, and ports are used from PORT on. Its words are compared between
Linux's own stack and silk's."""
import connecting
import datagrams
import ending
import holding
import moving
import naming
import urgent
import watching
from suite import run, sys

run(*sys.argv[1:5], sys.argv[5:])
