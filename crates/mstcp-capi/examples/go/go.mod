module mstcp.example/echo

go 1.19
