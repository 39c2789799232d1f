module libgenerate.dev/generate

go 1.19
