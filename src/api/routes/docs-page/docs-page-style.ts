/** Styles of the API reference, on top of those of Swagger UI. */
export const style = `
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #3b4151; background: #fff; }
header { max-width: 1460px; margin: 0 auto; padding: 1rem 20px 0; box-sizing: border-box; }
h1 { margin: 0 0 .5rem; }
[hidden] { display: none; }
#message { color: #b3261e; }
#message:empty { display: none; }
#access input, #access button { font: inherit; padding: .25rem .5rem; }
.swagger-ui .info, .swagger-ui .scheme-container .schemes > .servers-title { display: none; }
`;
