module paceline-example

go 1.19
